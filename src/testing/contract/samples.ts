import { attempt } from 'tillgate/internal';
import { contentOf, dereference, record } from '../openapi/document';
import type { LocatedOperation, Parameter } from '../openapi/document';
import { textOf, writeParameter } from './parameters';
import type { ApiRequest } from './responses';
import { sampleOf, TRIES } from './sampler';
import { schemaValidators } from './schemas';

/** Values of one request, used instead of generated ones: an existing id, a meaningful body. */
export interface SampleRequest {
  /** Parameters of the path, by name. */
  readonly path?: Readonly<Record<string, string | number>> | undefined;
  /** Parameters of the query, by name. Optional ones are sent only when named here. */
  readonly query?: Readonly<Record<string, string | number | boolean>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as JSON, or as a form where the document has no JSON; a string is sent as it is. */
  readonly body?: unknown;
}

const FORM = 'application/x-www-form-urlencoded';
const BOUNDARY = 'contract-cases-boundary';

/**
 * Makes the request of an operation, good except for its missing token: from the given values, else from examples and
 * schemas of the document.
 *
 * @param isTaken - whether a path is that of another operation: an example that leads there does not count
 * @throws TypeError when no value can be generated; it names the parameter or the body
 */
export function prepareRequest(
  document: object,
  at: LocatedOperation,
  given: SampleRequest,
  isTaken: (path: string) => boolean = () => false,
): ApiRequest {
  // A parameter of an operation replaces that of its path.
  const parameters = [...new Map(at.parameters.map((one) => [`${one.in} ${one.name}`, one])).values()];

  function valuesOf(place: string, own: Readonly<Record<string, unknown>> = {}) {
    const missing = parameters.filter((one) => one.in === place && one.required && !isGiven(one, own));
    const samples = missing.map((one) => writeParameter(one, exampleOf(document, one, one.name)));
    const others = Object.entries(own).map(([name, value]) => {
      const known = parameters.find((one) => one.in === place && one.name === name);
      return writeParameter(known ?? { name, in: place }, value);
    });
    return [...samples, ...others];
  }

  function fill(withExamples: boolean): string {
    const literal = (text: string): string => encodeURI(decodeSafely(text)).replace(/[?#]/g, encodeURIComponent);
    const [path = '', query] = at.path.split('?', 2);
    const filled = path.replace(/\{([^}]+)\}|[^{]+/g, (text, name?: string) => {
      if (name === undefined) return literal(text);
      const parameter = parameters.find((one) => one.in === 'path' && one.name === name) ?? { name, in: 'path' };
      const value = given.path?.[name] ?? exampleOf(document, parameter, name, withExamples);
      return writeParameter(parameter, value === '' ? 'sample' : value);
    });
    return query === undefined ? filled : `${filled}?${query}`;
  }

  const path = fill(true);
  const filled = isTaken(path) ? fill(false) : path;
  const whole = parameters.find((one) => one.in === 'querystring');
  const query = [
    ...valuesOf('query', given.query),
    ...(whole ? [new URLSearchParams(texts(exampleOf(document, whole, whole.name))).toString()] : []),
  ].filter(Boolean);
  const headers = parameters
    // OpenAPI 3.1 section 4.8.12.1: these three are ignored.
    .filter(({ in: place, name }) => place === 'header' && !/^(accept|content-type|authorization)$/i.test(name))
    .filter((one) => one.required && !isGiven(one, given.headers))
    .map((one) => [one.name, writeParameter(one, exampleOf(document, one, one.name))] as const);
  const cookies = valuesOf('cookie');
  const { type, body } = bodyOf(document, at, given);
  return {
    method: at.method,
    target: query.length === 0 ? filled : `${filled}${filled.includes('?') ? '&' : '?'}${query.join('&')}`,
    headers: {
      ...Object.fromEntries(headers),
      ...(cookies.length > 0 && { cookie: cookies.join('; ') }),
      ...(type !== undefined && { 'content-type': type }),
      ...given.headers,
    },
    body,
  };
}

function isGiven({ name, in: place }: Parameter, own: Readonly<Record<string, unknown>> = {}): boolean {
  const isSame = (other: string): boolean =>
    place === 'header' ? other.toLowerCase() === name.toLowerCase() : other === name;
  return Object.keys(own).some(isSame);
}

function decodeSafely(text: string): string {
  try {
    return decodeURI(text);
  } catch {
    return text;
  }
}

/** The body of an operation in one of its media types; `undefined` where none can be made. */
export function bodyAs(document: object, at: LocatedOperation, only: string): ReturnType<typeof bodyOf> | undefined {
  return attempt(() => bodyOf(document, at, {}, only));
}

/** Another JSON body that the operation allows; `undefined` where none is found. */
export function otherBody(document: object, { operation }: LocatedOperation, body: string): string | undefined {
  const [, media] =
    Object.entries(contentOf(document, operation.requestBody)).find(([type]) => /json/.test(type)) ?? [];
  const { schema } = record(media);
  const { isValid } = schemaValidators(document);
  const found = Array.from({ length: TRIES }, (_, variant) => TRIES - 1 - variant).flatMap((variant) => {
    const value = schema && attempt(() => sampleOf(document, schema, { withExamples: false, variant, isValid }));
    const text = JSON.stringify(value);
    return value === undefined || text === body || !isValid(schema, value) ? [] : [text];
  });
  return found[0];
}

function bodyOf(document: object, { operation }: LocatedOperation, given: SampleRequest, only?: string) {
  const content = contentOf(document, operation.requestBody);
  const types = Object.keys(content);
  if (types.length === 0) {
    return { type: undefined, body: given.body === undefined ? undefined : JSON.stringify(given.body) };
  }
  const preferred = [/^application\/(.+\+)?json\b/, /^application\/x-www-form-urlencoded/, /^multipart\/form-data/];
  const type = only ?? preferred.map((one) => types.find((name) => one.test(name))).find(Boolean) ?? types[0] ?? '';
  const media = content[type];
  const value = 'body' in given ? given.body : exampleOf(document, media, 'the body');
  if (!('body' in given) && !isWritable(type) && (typeof value !== 'string' || /xml|csv/.test(type))) {
    throw new TypeError(`no value of ${type} can be written for the body; give a body in "requests"`);
  }
  if (value === undefined) return { type: undefined, body: undefined };
  // `*/*` and `image/*` are ranges, not types.
  const sent = type.replace(/^\*\/\*/, 'application/json').replace(/^(\w+)\/\*/, '$1/plain');
  if (typeof value === 'string' && !/json/.test(sent)) return { type: sent, body: value };
  if (sent.startsWith(FORM)) return { type: sent, body: new URLSearchParams(texts(value)).toString() };
  if (sent.startsWith('multipart/'))
    return { type: `${sent.split(';')[0]}; boundary=${BOUNDARY}`, body: multipart(value) };
  if (typeof value === 'string' && 'body' in given) return { type: sent, body: value };
  return { type: sent, body: JSON.stringify(value) };
}

/** Whether a value with members has a form in a media type; a text is sent as it is. */
function isWritable(type: string): boolean {
  return /json|^\*\/\*|^application\/\*|^multipart\/|x-www-form-urlencoded/.test(type);
}

/** A form with a file wherever the value is not JSON (RFC 7578). */
function multipart(value: unknown): string {
  const parts = Object.entries(texts(value)).map(([name, text]) => {
    const isFile = text === 'sample';
    const file = isFile ? `; filename="${name}.txt"\r\nContent-Type: text/plain` : '';
    return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${text}\r\n`;
  });
  return `${parts.join('')}--${BOUNDARY}--\r\n`;
}

/**
 * OpenAPI 3.1 sections 4.8.12 and 4.8.14: the example, the first of the examples, else a value of the schema. An example
 * that its schema does not allow counts only where no other value is found.
 */
function exampleOf(document: object, holder: unknown, what: string, withExamples = true): unknown {
  try {
    const { example, examples, schema } = record(dereference(document, holder));
    const [inner] = Object.values(contentOf(document, holder));
    if (inner !== undefined) return exampleOf(document, inner, what, withExamples);
    const { value, dataValue = value } = record(dereference(document, Object.values(record(examples))[0]));
    const named = withExamples ? (example ?? dataValue) : undefined;
    const { wrongIn, isValid } = schemaValidators(document);
    if (schema === undefined) return named ?? 'sample';
    const makers = [
      ...(named === undefined ? [] : [() => named, () => JSON.parse(textOf(named)) as unknown]),
      ...(withExamples ? [() => sampleOf(document, schema, { isValid })] : []),
      ...Array.from(
        { length: TRIES },
        (_, variant) => () => sampleOf(document, schema, { withExamples: false, variant, isValid }),
      ),
    ];
    let problem: unknown;
    for (const make of makers) {
      try {
        const value = make();
        const wrong = wrongIn(schema, value);
        if (wrong === undefined) return value;
        problem ??= wrong;
      } catch (error) {
        problem ??= error;
      }
    }
    throw problem instanceof Error ? problem : new TypeError(`no sample is valid: ${String(problem)}`);
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    throw new TypeError(`cannot generate a value for ${what} (${found}); give one in "requests"`, { cause: error });
  }
}

function texts(values: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(record(values)).map(([name, one]) => [name, textOf(one)]));
}
