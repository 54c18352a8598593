import { isObject } from '../../core/objects';
import type { LocatedOperation } from '../../openapi/document';
import type { ApiRequest } from './http-client';
import { dereference } from './references';
import { sampleOf } from './sample-value';

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

/**
 * Makes the request of an operation, good except for its missing token: from the given values, else from examples and
 * schemas of the document.
 *
 * @throws TypeError when no value can be generated; it names the parameter or the body
 */
export function prepareRequest(document: object, at: LocatedOperation, given: SampleRequest): ApiRequest {
  // A parameter of an operation replaces that of its path.
  const parameters = [...new Map(at.parameters.map((one) => [`${one.in} ${one.name}`, one])).values()];

  function valuesOf(place: 'path' | 'query' | 'header', own: Readonly<Record<string, unknown>> = {}) {
    const missing = parameters.filter((one) => one.in === place && one.required && !(one.name in own));
    const samples = missing.map((one) => [one.name, exampleOf(document, one, one.name)]);
    return { ...(Object.fromEntries(samples) as object), ...own } as Readonly<Record<string, unknown>>;
  }

  const path = valuesOf('path', given.path);
  const filled = at.path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(valuesOf('query', given.query))) {
    for (const one of [value].flat()) query.append(name, String(one));
  }
  const { type, body } = bodyOf(document, at, given);
  const contentType = type !== undefined && { 'content-type': type };
  return {
    method: at.method,
    target: query.size === 0 ? filled : `${filled}?${query.toString()}`,
    headers: { ...texts(valuesOf('header')), ...contentType, ...given.headers },
    body,
  };
}

function bodyOf(document: object, { operation }: LocatedOperation, given: SampleRequest) {
  const requestBody = dereference(document, operation.requestBody);
  if (!isObject(requestBody) || !isObject(requestBody['content'])) {
    return { type: undefined, body: given.body === undefined ? undefined : JSON.stringify(given.body) };
  }
  const types = Object.keys(requestBody['content']);
  const type = types.find((name) => /^application\/(.+\+)?json$/.test(name)) ?? types[0] ?? 'application/json';
  const media = requestBody['content'][type];
  const value = 'body' in given ? given.body : exampleOf(document, media, 'the body');
  if (value === undefined) return { type: undefined, body: undefined };
  if (typeof value === 'string') return { type, body: value };
  return { type, body: type === FORM ? new URLSearchParams(texts(value)).toString() : JSON.stringify(value) };
}

/** OpenAPI 3.1 sections 4.8.12 and 4.8.14: the example, the first of the examples, else a value of the schema. */
function exampleOf(document: object, holder: unknown, what: string): unknown {
  try {
    const found = dereference(document, holder);
    const { example, examples, schema } = isObject(found) ? found : {};
    if (example !== undefined) return example;
    const first = dereference(document, isObject(examples) ? Object.values(examples)[0] : undefined);
    return isObject(first) && 'value' in first ? first['value'] : sampleOf(document, schema);
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    throw new TypeError(`cannot generate a value for ${what} (${found}); give one in "requests"`, { cause: error });
  }
}

function texts(values: unknown): Record<string, string> {
  return isObject(values) ? Object.fromEntries(Object.entries(values).map(([name, one]) => [name, String(one)])) : {};
}
