import type { ErrorObject } from 'ajv';
import { json } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { sendProblem } from '../../index';
import { compileContract, MAX_ERRORS } from './compile';
import type { CompiledBody, CompiledOperation, CompiledPath } from './compile';
import type { ContractDocument } from '../../openapi/document';

const BODY_LIMIT = '100kb';
const MAX_NAME = 80;

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
 * @throws TypeError when the document cannot be compiled
 */
export function requestValidation(document: ContractDocument): RequestHandler {
  const find = compileContract(document);
  // Not strict: the schema decides whether the body must be an object.
  const parseJson = json({ limit: BODY_LIMIT, strict: false, type: () => true });

  return function validateRequest(req, res, next) {
    const match = find(`/v1${req.path}`);
    if (!match) return refusePath(req, res);
    const operation = match.target.get(req.method === 'HEAD' ? 'GET' : req.method);
    if (!operation) return refuseMethod(req, res, match.target);
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
    const decoded = decode(text);
    if (decoded === undefined) return [{ path: `/path/${name}`, message: 'must be percent-encoded UTF-8' }];
    parameters[name] = decoded;
  }
  return path(parameters) ? [] : toRequestErrors('path', path.errors);
}

function checkQuery({ query }: CompiledOperation, req: Request): readonly RequestError[] {
  // A copy: coercion changes it.
  return query({ ...req.query }) ? [] : toRequestErrors('query', query.errors);
}

function checkBody({ required, validate }: CompiledBody, req: Request): readonly RequestError[] {
  if (!hasBody(req)) return required ? [{ path: '/body', message: 'is required' }] : [];
  return validate(req.body) ? [] : toRequestErrors('body', validate.errors);
}

/** Whether the request announces a body that is not empty (RFC 9112 section 6.3). */
function hasBody(req: Request): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
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

function refuseMediaType(req: Request, res: Response, { mediaTypes }: CompiledBody): void {
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
  return (errors ?? []).slice(0, MAX_ERRORS).map((error) => ({
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
