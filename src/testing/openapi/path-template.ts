/** Parameter or wildcard of Express 5: `:name` or `:"any name"`. */
const NAMED = /^[:*](?:([\p{ID_Start}$_][\p{ID_Continue}$]*)|"((?:[^"\\]|\\.)*)")/u;
/** Parameter of Express 4: `:name`, `:name(\\d+)`; in `/orders/:id\\:cancel` the second colon is none. */
const LEGACY_PARAMETER = /(?<!\\):(\w+)(?:\((?:\\.|[^\\()])*\))?/g;
const LEGACY_OPTIONAL = /(\/:\w+(?:\((?:\\.|[^\\()])*\))?)\?/;

/** Whether every path matches, as that of a 404 handler. */
export function isCatchAll(path: string | RegExp): boolean {
  return path instanceof RegExp ? /^\^?(?:\\\/)?\.\*\$?$/.test(path.source) : /^\/?(?:\*\w*|\{\/?\*\w+\})$/.test(path);
}

/**
 * Converts a path of Express to OpenAPI, `/orders/:id` to `/orders/{id}`: one template per variant of its optional parts,
 * `/` as the empty text. `undefined` for a regular expression.
 *
 * @param legacy - whether it has the syntax of Express 4
 */
export function templatesOf(path: string | RegExp, legacy: boolean): readonly string[] | undefined {
  if (path instanceof RegExp) return undefined;
  const variants = legacy ? legacyVariants(path) : variantsOf(path);
  return [...new Set(variants.map((variant) => variant.replace(/\/+$/, '')))];
}

/** Express 5: a group in braces is optional. */
function variantsOf(path: string): readonly string[] {
  let variants = [''];
  for (let at = 0; at < path.length;) {
    const rest = path.slice(at);
    const [named, name, quoted] = NAMED.exec(rest) ?? [];
    const isGroup = rest.startsWith('{');
    const length = named?.length ?? (isGroup ? groupLength(rest) : rest.startsWith('\\') ? 2 : 1);
    const literal = rest.slice(length - 1, length);
    const ends = isGroup ? ['', ...variantsOf(rest.slice(1, length - 1))] : [named ? `{${name ?? quoted}}` : literal];
    variants = variants.flatMap((start) => ends.map((end) => start + end));
    at += length;
  }
  return variants;
}

function groupLength(text: string): number {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '{') depth += 1;
    else if (text[at] === '}' && --depth === 0) return at + 1;
  }
  return text.length;
}

/** Express 4: `/:name?` is optional, `*` matches the rest. */
function legacyVariants(path: string): readonly string[] {
  const [first = '', ...parts] = path.split(LEGACY_OPTIONAL);
  let variants = [first];
  for (let index = 0; index < parts.length; index += 2) {
    const [optional = '', text = ''] = parts.slice(index, index + 2);
    variants = variants.flatMap((start) => [start + text, start + optional + text]);
  }
  return variants.map((variant) => {
    return variant.replace(LEGACY_PARAMETER, '{$1}').replace(/\*/g, '{*}').replace(/\\(.)/g, '$1');
  });
}

/** A template without parameter names and without a slash at its end: Express routes templates of one shape alike. */
export function shapeOf(template: string): string {
  return template.replace(/\{[^}]*\}/g, '{}').replace(/\/+$/, '');
}

/** Parameter values of several kinds: a route with a pattern of its own may accept only one of them. */
const KINDS: readonly ((index: number) => string)[] = [
  (index) => `probe${'abcdefghijklmnopqrstuvwxyz'[index % 26]}`,
  (index) => `90000${index}`,
  (index) => `00000000-0000-4000-8000-00000000000${index % 10}`,
];

/** Makes request paths for a template, `/orders/probea` for `/orders/{id}`, with the values of their parameters. */
export function probesOf(template: string): readonly { readonly path: string; readonly values: readonly string[] }[] {
  const kinds = template.includes('{') ? KINDS : KINDS.slice(0, 1);
  return kinds.map((valueOf) => {
    const values: string[] = [];
    const path = template.replace(/\{[^}]*\}/g, () => values[values.push(valueOf(values.length)) - 1] ?? '');
    return { path: path || '/', values };
  });
}
