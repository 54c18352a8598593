import { isObject } from '../../core/objects';
import type { LocatedOperation } from '../../openapi/document';
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

/** A request that is good except for its missing token. */
export interface PreparedRequest {
  readonly method: string;
  /** With its query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

interface Media {
  readonly schema?: unknown;
  readonly example?: unknown;
  readonly examples?: unknown;
}

const FORM = 'application/x-www-form-urlencoded';

/**
 * Makes the request of an operation from the given values, else from examples and schemas of the document.
 *
 * @throws TypeError when no value can be generated; it names the parameter or the body
 */
export function prepareRequest(document: object, at: LocatedOperation, given: SampleRequest): PreparedRequest {
  // A parameter of an operation replaces that of its path.
  const parameters = [...new Map(at.parameters.map((one) => [`${one.in} ${one.name}`, one])).values()];

  function valuesOf(place: 'path' | 'query' | 'header', own: Readonly<Record<string, unknown>> = {}) {
    const here = parameters.filter((one) => one.in === place && one.required && !(one.name in own));
    const samples = here.map((one) => [one.name, orThrow(one.name, () => exampleOf(document, one))] as const);
    return { ...Object.fromEntries(samples), ...own };
  }

  const path = valuesOf('path', given.path);
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(valuesOf('query', given.query))) {
    for (const one of [value].flat()) query.append(name, String(one));
  }
  const filled = at.path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])));
  const { type, body } = bodyOf(document, at, given);
  const headers = {
    ...texts(valuesOf('header')),
    ...(type !== undefined && { 'content-type': type }),
    ...given.headers,
  };
  return { method: at.method, target: query.size === 0 ? filled : `${filled}?${query.toString()}`, headers, body };
}

function bodyOf(document: object, { operation }: LocatedOperation, given: SampleRequest) {
  const requestBody = dereference(document, operation.requestBody);
  if (!isObject(requestBody) || !isObject(requestBody['content'])) {
    return { type: undefined, body: given.body === undefined ? undefined : JSON.stringify(given.body) };
  }
  const types = Object.keys(requestBody['content']);
  const type = types.find((name) => /^application\/(.+\+)?json$/.test(name)) ?? types[0] ?? 'application/json';
  const media = dereference(document, requestBody['content'][type]);
  const value = 'body' in given ? given.body : orThrow('the body', () => exampleOf(document, media as Media));
  if (value === undefined) return { type: undefined, body: undefined };
  if (typeof value === 'string') return { type, body: value };
  return { type, body: type === FORM ? new URLSearchParams(texts(value)).toString() : JSON.stringify(value) };
}

/** OpenAPI 3.1 sections 4.8.12 and 4.8.14: the example, the first of the examples, else a value of the schema. */
function exampleOf(document: object, { example, examples, schema }: Media): unknown {
  if (example !== undefined) return example;
  const [named] = isObject(examples) ? Object.values(examples) : [];
  const shown = dereference(document, named);
  return isObject(shown) && 'value' in shown ? shown['value'] : sampleOf(document, schema);
}

function texts(values: unknown): Record<string, string> {
  return isObject(values) ? Object.fromEntries(Object.entries(values).map(([name, one]) => [name, String(one)])) : {};
}

function orThrow(what: string, make: () => unknown): unknown {
  try {
    return make();
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    throw new TypeError(`cannot generate a value for ${what} (${found}); give one in "requests"`, { cause: error });
  }
}
