import type { RoutePath } from './express-layer';

/** Where a parameter ends in the syntax of Express 5: `:name` or `:"any name"`, and the same for wildcards. */
const NAMED = /^[:*](?:([\p{ID_Start}$_][\p{ID_Continue}$]*)|"((?:[^"\\]|\\.)*)")/u;
/** A parameter of Express 4: `:name`, `:name(\\d+)`, `:name?`. */
const LEGACY_PARAMETER = /:(\w+)(?:\((?:\\.|[^\\()])*\))?/g;

/** A path that every request fits: what is mounted there answers what nothing else has answered. */
export function isCatchAll(path: RoutePath): boolean {
  return path instanceof RegExp ? /^\^?(?:\\\/)?\.\*\$?$/.test(path.source) : /^\/?(?:\*\w*|\{\/?\*\w+\})$/.test(path);
}

/**
 * Writes a path of Express as OpenAPI does, `/orders/:id` as `/orders/{id}`: one template per variant where parts are
 * optional, `/` as the empty text. `undefined` for a regular expression.
 *
 * @param legacy - whether it is written in the syntax of Express 4
 */
export function templatesOf(path: RoutePath, legacy: boolean): readonly string[] | undefined {
  if (path instanceof RegExp) return undefined;
  const variants = legacy ? legacyVariants(path) : variantsOf(path);
  return [...new Set(variants.map((variant) => variant.replace(/\/+$/, '')))];
}

/** Express 5: a group in braces is there or not. */
function variantsOf(path: string): readonly string[] {
  let variants = [''];
  const append = (texts: readonly string[]): void => {
    variants = variants.flatMap((before) => texts.map((text) => before + text));
  };
  for (let at = 0; at < path.length;) {
    const rest = path.slice(at);
    const [named, name, quoted] = NAMED.exec(rest) ?? [];
    if (named !== undefined) {
      append([`{${name ?? quoted}}`]);
      at += named.length;
    } else if (rest.startsWith('{')) {
      const end = endOfGroup(path, at);
      append(['', ...variantsOf(path.slice(at + 1, end))]);
      at = end + 1;
    } else {
      const length = rest.startsWith('\\') ? 2 : 1;
      append([rest.slice(length - 1, length)]);
      at += length;
    }
  }
  return variants;
}

function endOfGroup(path: string, start: number): number {
  let depth = 0;
  for (let at = start; at < path.length; at += 1) {
    if (path[at] === '\\') at += 1;
    else if (path[at] === '{') depth += 1;
    else if (path[at] === '}' && --depth === 0) return at;
  }
  return path.length;
}

/** Express 4: `/:name?` is there or not, `*` takes the rest. */
function legacyVariants(path: string): readonly string[] {
  const [before = '', ...after] = path.split(/(\/:\w+(?:\((?:\\.|[^\\()])*\))?)\?/);
  let variants = [before];
  for (let index = 0; index < after.length; index += 2) {
    const [optional = '', text = ''] = after.slice(index, index + 2);
    variants = variants.flatMap((start) => [start + text, start + optional + text]);
  }
  return variants.map((variant) => variant.replace(LEGACY_PARAMETER, '{$1}').replace(/\*/g, '{*}'));
}
