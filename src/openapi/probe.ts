/** Values for the parameters of a path: what one route does not take, for its own pattern, the next kind may fit. */
const KINDS: readonly ((index: number) => string)[] = [
  (index) => `probe${'abcdefghijklmnopqrstuvwxyz'[index % 26]}`,
  (index) => `90000${index}`,
  (index) => `00000000-0000-4000-8000-00000000000${index % 10}`,
];

/** A path that a request could have. */
export interface Probe {
  readonly path: string;
  /** What stands in the place of its parameters. */
  readonly values: readonly string[];
}

/** Makes paths that fit a template of OpenAPI: `/orders/probea` for `/orders/{id}`. */
export function probesOf(template: string): readonly Probe[] {
  // Without parameters there is one.
  const kinds = template.includes('{') ? KINDS : KINDS.slice(0, 1);
  return kinds.map((valueOf) => {
    const values: string[] = [];
    const path = template.replace(/\{[^}]*\}/g, () => {
      const value = valueOf(values.length);
      values.push(value);
      return value;
    });
    return { path: path === '' ? '/' : path, values };
  });
}

/** A template without the names of its parameters and a slash at its end: to Express, the same shape is the same route. */
export function shapeOf(template: string): string {
  return template.replace(/\{[^}]*\}/g, '{}').replace(/\/+$/, '');
}
