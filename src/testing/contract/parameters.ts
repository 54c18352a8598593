import { isObject } from 'tillgate/internal';
import type { Parameter } from '../openapi/document';

/** How one style writes lists and objects (OpenAPI 3.1 section 4.8.12). */
interface Style {
  readonly prefix: string;
  /** Between values that are not exploded. */
  readonly comma: string;
  /** Between values that are exploded. */
  readonly separator: string;
  readonly isNamed: boolean;
}

const FORM: Style = { prefix: '', comma: ',', separator: '&', isNamed: true };
const STYLES: Readonly<Record<string, Style>> = {
  simple: { prefix: '', comma: ',', separator: ',', isNamed: false },
  label: { prefix: '.', comma: ',', separator: '.', isNamed: false },
  matrix: { prefix: ';', comma: ',', separator: ';', isNamed: true },
  form: FORM,
  spaceDelimited: { prefix: '', comma: '%20', separator: '&', isNamed: true },
  pipeDelimited: { prefix: '', comma: '%7C', separator: '&', isNamed: true },
};
const DEFAULT_STYLES: Readonly<Record<string, string>> = { path: 'simple', header: 'simple' };

/** Writes the value of a parameter: `a=1&a=2`, `a[b]=1`, `1,2`. In the query and the cookies it has its name. */
export function writeParameter(parameter: Parameter, value: unknown): string {
  const { name, in: place, content, allowReserved } = parameter;
  const { style = DEFAULT_STYLES[place] ?? 'form', explode = style === 'form' || style === 'cookie' } = parameter;
  const encode = (text: string): string =>
    place === 'header' ? text : allowReserved ? encodeURI(text) : encodeURIComponent(text);
  const own = encode(name);
  if (content !== undefined) {
    const text = encode(typeof value === 'string' ? value : JSON.stringify(value));
    return place === 'query' || place === 'cookie' ? `${own}=${text}` : text;
  }
  if (style === 'deepObject' && isObject(value)) return deep(own, value, encode);
  const { prefix, comma, separator, isNamed } = STYLES[style] ?? FORM;
  const named = (key: string, text: string): string => (isNamed ? `${key}=${text}` : text);
  const cookies = place === 'cookie' ? '; ' : separator;
  if (Array.isArray(value)) {
    const texts = value.map((one) => encode(textOf(one)));
    return prefix + (explode ? texts.map((text) => named(own, text)).join(cookies) : named(own, texts.join(comma)));
  }
  if (isObject(value)) {
    const members = Object.entries(value).map(([key, one]) => [encode(key), encode(textOf(one))] as const);
    if (explode) return prefix + members.map(([key, text]) => `${key}=${text}`).join(cookies);
    return prefix + named(own, members.flat().join(comma));
  }
  return prefix + named(own, encode(textOf(value)));
}

/** `a[b][c]=1`, as most servers read objects that the specification leaves open. */
function deep(name: string, value: unknown, encode: (text: string) => string): string {
  if (Array.isArray(value)) return value.map((one) => deep(`${name}[]`, one, encode)).join('&');
  if (!isObject(value)) return `${name}=${encode(textOf(value))}`;
  return Object.entries(value)
    .map(([key, one]) => deep(`${name}[${encode(key)}]`, one, encode))
    .join('&');
}

/** A value as text, JSON where it has members. */
export function textOf(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}
