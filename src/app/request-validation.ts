import type { ErrorObject, ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020';
import { json } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { loadContract, nameOf, operationsOf, toFragment } from '@tillgate/testing/internal';
import type { ContractDocument, LocatedOperation } from '@tillgate/testing/internal';
import { attempt } from 'tillgate/internal';
import { ConfigurationError, sendProblem } from 'tillgate';

const BODY_LIMIT = '100kb';
const MAX_NAME = 80;
const DOCUMENT = 'contract';
const JSON_BODY = 'application/json';

/** One place where a request does not match the contract. */
interface RequestError {
  /** `/body/lines/0/quantity`, `/query/limit`, `/path/id`. */
  readonly path: string;
  readonly message: string;
}

/**
 * Makes the middleware that validates requests by the contract and parses their bodies. Mount it at `/v1`, after
 * `authenticate()` and before the routers: `app.use('/v1', gate, requestValidation(document), commerceRouter())`.
 *
 * An unknown path gets 404, an unknown method 405 with `Allow`; a body that is not JSON 415 or 400, one above 100 kB 413;
 * a request that does not match a schema 400 with `errors`. Requests without the scopes of the operation are not
 * validated: the guard of the route refuses them with 403.
 *
 * @throws ConfigurationError when a schema cannot be compiled
 */
export function requestValidation(document: ContractDocument): RequestHandler {
  const find = compileContract(document);
  // Not strict: the schema decides whether the body must be an object.
  const parseJson = json({ limit: BODY_LIMIT, strict: false, type: () => true });

  return function validateRequest(req, res, next) {
    const match = find(`/v1${req.path}`);
    if (!match) return refusePath(req, res);
    const compiledOperation = match.operations.get(req.method === 'HEAD' ? 'GET' : req.method);
    if (!compiledOperation) return refuseMethod(req, res, match.operations);
    const operation = compiledOperation();
    if (!mayCall(operation, req)) return next();

    const errors = [...checkPath(operation, match.parameters), ...checkQuery(operation, req)];
    if (!operation.body) return errors.length > 0 ? refuseRequest(req, res, errors) : next();

    const { body } = operation;
    if (hasBody(req) && !req.is([...body.mediaTypes])) return refuseMediaType(req, res, body);
    parseJson(req, res, function checkParsed(error?: unknown) {
      if (error !== undefined) return refuseUnreadable(req, res, error, next);
      const all = [...errors, ...checkBody(body, req)];
      return all.length > 0 ? refuseRequest(req, res, all) : next();
    });
  };
}

function mayCall({ security }: CompiledOperation, req: Request): boolean {
  const granted = req.auth?.scopes ?? [];
  return security.some((scopes) => scopes.every((scope) => granted.includes(scope)));
}

function checkPath({ path }: CompiledOperation, encoded: Readonly<Record<string, string>>): readonly RequestError[] {
  const parameters: Record<string, string> = {};
  for (const [name, text] of Object.entries(encoded)) {
    const decoded = attempt(() => decodeURIComponent(text));
    if (decoded === undefined) return [{ path: `/path/${name}`, message: 'must be percent-encoded UTF-8' }];
    parameters[name] = decoded;
  }
  return path(parameters) ? [] : toRequestErrors('path', path.errors);
}

function checkQuery({ query }: CompiledOperation, req: Request): readonly RequestError[] {
  // A copy: coercion changes it.
  return query({ ...req.query }) ? [] : toRequestErrors('query', query.errors);
}

function checkBody(
  { required, validate }: NonNullable<CompiledOperation['body']>,
  req: Request,
): readonly RequestError[] {
  if (!hasBody(req)) return required ? [{ path: '/body', message: 'is required' }] : [];
  return validate(req.body) ? [] : toRequestErrors('body', validate.errors);
}

/** Whether the request announces a body that is not empty (RFC 9112 section 6.3). */
function hasBody(req: Request): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;
}

function refusePath(req: Request, res: Response): void {
  sendProblem(req, res, {
    status: 404,
    code: 'not_found',
    detail: 'No resource has this URL: openapi.yaml and `tillgate routes` list all of them.',
  });
}

function refuseMethod(req: Request, res: Response, path: CompiledPath): void {
  const methods = [...path.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  const allow = methods.join(', ');
  sendProblem(req, res, {
    status: 405,
    code: 'method_not_allowed',
    detail: `This resource supports ${allow}.`,
    headers: { Allow: allow },
  });
}

function refuseRequest(req: Request, res: Response, errors: readonly RequestError[]): void {
  sendProblem(req, res, {
    status: 400,
    code: 'invalid_request',
    title: 'Invalid request',
    detail: 'The request does not match the contract of this API: see errors.',
    members: { errors },
  });
}

function refuseMediaType(req: Request, res: Response, { mediaTypes }: NonNullable<CompiledOperation['body']>): void {
  sendProblem(req, res, {
    status: 415,
    code: 'unsupported_media_type',
    detail: `Send the body as ${mediaTypes.join(' or ')}, and say so in Content-Type.`,
    headers: { Accept: mediaTypes.join(', ') },
  });
}

/** Refuses what the body parser cannot read, without its message: that quotes the request. */
function refuseUnreadable(req: Request, res: Response, error: unknown, next: (error: unknown) => void): void {
  const { type } = (error ?? {}) as { readonly type?: unknown };
  if (type === 'entity.parse.failed') {
    return sendProblem(req, res, {
      status: 400,
      code: 'invalid_request',
      title: 'Invalid request',
      detail: 'The body is not valid JSON: look for a missing quote, comma or bracket.',
      members: { errors: [{ path: '/body', message: 'must be valid JSON' }] },
    });
  }
  if (type === 'entity.too.large') {
    return sendProblem(req, res, {
      status: 413,
      code: 'payload_too_large',
      detail: 'The body is larger than the 100 kB that are accepted here.',
    });
  }
  next(error);
}

/** Converts the errors of Ajv for the caller. */
function toRequestErrors(
  part: 'path' | 'query' | 'body',
  errors: readonly ErrorObject[] | null | undefined,
): readonly RequestError[] {
  return (errors ?? []).map((error) => ({
    path: `/${part}${error.instancePath}${memberOf(error)}`,
    message: messageOf(error),
  }));
}

/** The missing or unknown member: Ajv names the object that contains it. */
function memberOf({ keyword, params }: ErrorObject): string {
  const given = params as { readonly missingProperty?: string; readonly additionalProperty?: string };
  const name = { required: given.missingProperty, additionalProperties: given.additionalProperty }[keyword];
  return name === undefined ? '' : `/${escape(name.slice(0, MAX_NAME))}`;
}

function messageOf({ keyword, params, message = 'does not fit' }: ErrorObject): string {
  const allowed = (params as { readonly allowedValues?: readonly unknown[] }).allowedValues;
  if (keyword === 'required') return 'is required';
  if (keyword === 'additionalProperties') return 'is not known here';
  if (keyword === 'not') return 'must not have this value';
  return allowed ? `must be one of ${allowed.join(', ')}` : message;
}

/** A reference token of a JSON pointer (RFC 6901 section 3). */
function escape(name: string): string {
  return name.replace(/~/g, '~0').replace(/\//g, '~1');
}

/** The validators of one operation. */
interface CompiledOperation {
  /** Alternatives, each of which requires all of its scopes. */
  readonly security: readonly (readonly string[])[];
  readonly path: ValidateFunction;
  /** Coerces the texts of the query to the types of the contract first. */
  readonly query: ValidateFunction;
  /** `undefined`: a body is ignored. */
  readonly body:
    | { readonly required: boolean; readonly mediaTypes: readonly string[]; readonly validate: ValidateFunction }
    | undefined;
}

/** The operations of one path, by method in upper case. The first call compiles. */
type CompiledPath = ReadonlyMap<string, () => CompiledOperation>;

const compiled = new WeakMap<ContractDocument, ReturnType<typeof compilePaths>>();

/**
 * Prepares the schemas of all requests, once per document; returns the look-up by path. A given document is compiled
 * immediately, so that its mistakes are found. Our own has none, which a test proves: an operation of it is compiled at its
 * first request, for a faster start.
 *
 * @throws ConfigurationError with every operation that cannot be compiled
 */
export function compileContract(document: ContractDocument): ReturnType<typeof compilePaths> {
  const find = compiled.get(document) ?? compilePaths(document, document !== loadContract());
  compiled.set(document, find);
  return find;
}

function compilePaths(document: ContractDocument, immediately: boolean): (path: string) => PathMatch | undefined {
  const bodies = schemasOf(document, { coerceTypes: false });
  const parameters = memoize(schemasOf(document, { coerceTypes: true }));
  const paths = new Map<string, Map<string, () => CompiledOperation>>();
  const problems: string[] = [];
  for (const at of operationsOf(document)) {
    const operations = paths.get(at.path) ?? new Map<string, () => CompiledOperation>();
    paths.set(at.path, operations);
    let operation: CompiledOperation | undefined;
    const compile = (): CompiledOperation =>
      (operation ??= {
        security: at.security,
        path: parameters(parametersSchema(at, 'path')),
        query: parameters(parametersSchema(at, 'query')),
        body: compileBody(bodies, at),
      });
    operations.set(at.method, compile);
    try {
      if (immediately) compile();
    } catch (error) {
      problems.push(`${nameOf(at)}: the document has a schema that cannot be used: ${(error as Error).message}`);
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return pathMatcher(paths);
}

/** The schemas of the document, ready to be compiled. */
function schemasOf(document: ContractDocument, { coerceTypes }: { readonly coerceTypes: boolean }): Ajv2020 {
  const ajv = new Ajv2020({
    // The first error ends the work: a body of 100 kB can have 33,000.
    allErrors: false,
    coerceTypes,
    // An OpenAPI document is not a JSON Schema as a whole.
    strict: false,
    // Saves a third of the start; a test validates every schema instead.
    validateSchema: false,
    meta: false,
    // Saves a quarter of the start.
    inlineRefs: false,
    code: { optimize: false },
  });
  return addFormats(ajv).addSchema(document, DOCUMENT);
}

/** Compiles equal schemas once: most operations have the same parameters. */
function memoize(ajv: Ajv2020): (schema: object) => ValidateFunction {
  const validators = new Map<string, ValidateFunction>();
  return function compile(schema) {
    const text = JSON.stringify(schema);
    const validate = validators.get(text) ?? ajv.compile(schema);
    validators.set(text, validate);
    return validate;
  };
}

function compileBody(ajv: Ajv2020, { path, method, operation }: LocatedOperation): CompiledOperation['body'] {
  const { requestBody } = operation;
  if (!requestBody) return undefined;
  const names = ['paths', path, method.toLowerCase(), 'requestBody', 'content', JSON_BODY, 'schema'];
  const validate = ajv.getSchema(`${DOCUMENT}#${toFragment(names)}`);
  if (!validate) throw new TypeError(`its body has no schema for ${JSON_BODY}`);
  return { required: requestBody.required ?? false, mediaTypes: Object.keys(requestBody.content), validate };
}

/** The parameters of one place as one object; unknown ones are errors. */
function parametersSchema({ parameters }: LocatedOperation, place: 'path' | 'query'): object {
  const here = parameters.filter((parameter) => parameter.in === place);
  return {
    type: 'object',
    additionalProperties: false,
    required: here.filter(({ required }) => required).map(({ name }) => name),
    // A parameter with `content` has no schema: any value.
    properties: Object.fromEntries(here.map(({ name, schema = {} }) => [name, absolute(schema)])),
  };
}

/** A schema outside of the document: its reference needs the name of the document. */
function absolute(schema: object): object {
  return '$ref' in schema ? { ...schema, $ref: `${DOCUMENT}${String(schema.$ref)}` } : schema;
}

/** The operations of a request path. */
interface PathMatch {
  readonly operations: CompiledPath;
  /** Still percent-encoded. */
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Makes a look-up from request paths to OpenAPI templates (`/v1/orders/{id}`), concrete ones first (OpenAPI 3.1 section
 * 4.8.8.2). Ignores case and one slash at the end, as Express routers do by default: no request that Express serves may
 * bypass the contract.
 */
function pathMatcher(paths: ReadonlyMap<string, CompiledPath>): (path: string) => PathMatch | undefined {
  const templates = Array.from(paths, ([template, operations]) => ({ ...parseTemplate(template), operations }));
  templates.sort((a, b) => (a.shape < b.shape ? -1 : 1));

  return function match(path) {
    const text = withoutLastSlash(path);
    for (const { pattern, names, operations } of templates) {
      const values = pattern.exec(text)?.slice(1);
      if (!values) continue;
      return { operations, parameters: Object.fromEntries(names.map((name, index) => [name, values[index] ?? ''])) };
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
