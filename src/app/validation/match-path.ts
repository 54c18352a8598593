/** The target of a request path. */
export interface PathMatch<Target> {
  readonly target: Target;
  /** Still percent-encoded. */
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Makes a look-up from request paths to OpenAPI templates (`/v1/orders/{id}`), concrete ones first (OpenAPI 3.1 section
 * 4.8.8.2). Ignores case and one slash at the end, as Express routers do by default: no request that Express serves may
 * bypass the contract.
 */
export function pathMatcher<Target>(
  targets: Iterable<readonly [template: string, target: Target]>,
): (path: string) => PathMatch<Target> | undefined {
  const templates = Array.from(targets, ([template, target]) => ({ ...parseTemplate(template), target }));
  templates.sort((a, b) => (a.shape < b.shape ? -1 : 1));

  return function match(path) {
    const text = withoutLastSlash(path);
    for (const { pattern, names, target } of templates) {
      const values = pattern.exec(text)?.slice(1);
      if (!values) continue;
      return { target, parameters: Object.fromEntries(names.map((name, index) => [name, values[index] ?? ''])) };
    }
    return undefined;
  };
}

function parseTemplate(template: string) {
  const names: string[] = [];
  const segments = withoutLastSlash(template)
    .split('/')
    .map((segment) => {
      const name = /^\{(.+)\}$/.exec(segment)?.[1];
      if (name === undefined) return { shape: '0', source: segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') };
      names.push(name);
      return { shape: '1', source: '([^/]+)' };
    });
  const pattern = new RegExp(`^${segments.map(({ source }) => source).join('/')}$`, 'i');
  // Sorts literals before parameters, from the first segment on.
  return { names, pattern, shape: segments.map(({ shape }) => shape).join('') };
}

function withoutLastSlash(path: string): string {
  return path.replace(/(?<=.)\/$/, '');
}
