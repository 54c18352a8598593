import type { ErrorObject, ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020';
import { json } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { sendProblem } from 'tillgate';
import { operationOf, parametersOf } from './contract';
import type { Contract } from './contract';

const BODY_LIMIT = '100kb';
const MAX_NAME = 80;
const JSON_BODY = 'application/json';

/** One place where a request does not match openapi.yaml. */
interface RequestError {
  /** `/body/lines/0/quantity`, `/query/limit`, `/path/id`. */
  readonly path: string;
  readonly message: string;
}

/** The validators of one operation. */
interface Validators {
  readonly path: ValidateFunction;
  /** Coerces the texts of the query to the types of openapi.yaml. */
  readonly query: ValidateFunction;
  /** `undefined`: a body is ignored. Fills in the defaults. */
  readonly body: { readonly required: boolean; readonly validate: ValidateFunction } | undefined;
}

/**
 * Prepares the validation of requests by openapi.yaml. The result makes the middleware of one operation, to mount after the
 * guard of its route; it parses the body, too:
 *
 * ```ts
 * const validate = requestValidation(contract);
 * router.post('/', requireScope('orders:write'), validate('POST', '/v1/orders'), createOrder);
 * ```
 *
 * A body that is not JSON gets 415 or 400, one above 100 kB 413, a request that does not match a schema 400 with `errors`.
 */
export function requestValidation(contract: Contract): (method: string, path: string) => RequestHandler {
  const compile = compiler(contract);
  // Not strict: the schema decides whether the body must be an object.
  const parseJson = json({ limit: BODY_LIMIT, strict: false, type: () => true });

  return function validationOf(method, path) {
    const operation = operationOf(contract, method, path);
    let validators: Validators | undefined;

    return function validateRequest(req, res, next) {
      // At the first request, for a faster start.
      validators ??= compile(method, path);
      const { body, path: pathOf, query } = validators;
      const errors = [
        ...check('path', pathOf, { ...req.params }),
        // A copy: coercion changes it.
        ...check('query', query, { ...req.query }),
      ];
      if (!operation.requestBody) return errors.length > 0 ? refuseRequest(req, res, errors) : next();
      if (hasBody(req) && !req.is(JSON_BODY)) return refuseMediaType(req, res);
      parseJson(req, res, function checkParsed(error?: unknown) {
        if (error !== undefined) return refuseUnreadable(req, res, error, next);
        if (hasBody(req)) errors.push(...(body ? check('body', body.validate, req.body) : []));
        else if (body?.required) errors.push({ path: '/body', message: 'is required' });
        return errors.length > 0 ? refuseRequest(req, res, errors) : next();
      });
    };
  };
}

function check(part: 'path' | 'query' | 'body', validate: ValidateFunction, value: unknown): RequestError[] {
  if (validate(value)) return [];
  return (validate.errors ?? []).map((error) => ({
    path: `/${part}${error.instancePath}${memberOf(error)}`,
    message: messageOf(error),
  }));
}

/** Whether the request announces a body that is not empty (RFC 9112 section 6.3). */
function hasBody(req: Request): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;
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

function refuseMediaType(req: Request, res: Response): void {
  sendProblem(req, res, {
    status: 415,
    code: 'unsupported_media_type',
    detail: `Send the body as ${JSON_BODY}, and say so in Content-Type.`,
    headers: { Accept: JSON_BODY },
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

/** The missing or unknown member as a reference token (RFC 6901 section 3): Ajv names the object that contains it. */
function memberOf({ keyword, params }: ErrorObject): string {
  const given = params as { readonly missingProperty?: string; readonly additionalProperty?: string };
  const name = { required: given.missingProperty, additionalProperties: given.additionalProperty }[keyword];
  return name === undefined ? '' : `/${name.slice(0, MAX_NAME).replace(/~/g, '~0').replace(/\//g, '~1')}`;
}

function messageOf({ keyword, params, message = 'does not fit' }: ErrorObject): string {
  const allowed = (params as { readonly allowedValues?: readonly unknown[] }).allowedValues;
  if (keyword === 'required') return 'is required';
  if (keyword === 'additionalProperties') return 'is not known here';
  if (keyword === 'not') return 'must not have this value';
  return allowed ? `must be one of ${allowed.join(', ')}` : message;
}

const DOCUMENT = 'contract';

/** Makes the validators of operations. */
export function compiler(contract: Contract): (method: string, path: string) => Validators {
  const bodies = schemas(contract, { coerceTypes: false, useDefaults: true });
  const parameters = schemas(contract, { coerceTypes: true });
  return function compile(method, path) {
    const { requestBody } = operationOf(contract, method, path);
    const pointer = `/paths/${path.replaceAll('/', '~1')}/${method.toLowerCase()}/requestBody/content/application~1json`;
    const $ref = `${DOCUMENT}#${encodeURI(pointer)}/schema`;
    return {
      path: parameters.compile(objectOf(contract, method, path, 'path')),
      query: parameters.compile(objectOf(contract, method, path, 'query')),
      body: requestBody && { required: requestBody.required ?? false, validate: bodies.compile({ $ref }) },
    };
  };
}

/** The schemas of openapi.yaml, ready to be compiled. */
function schemas(contract: Contract, options: { readonly coerceTypes: boolean; readonly useDefaults?: true }): Ajv2020 {
  const ajv = new Ajv2020({
    ...options,
    // The first error ends the work: a body of 100 kB can have 33,000.
    allErrors: false,
    // An OpenAPI document is not a JSON Schema as a whole.
    strict: false,
    validateSchema: false,
    meta: false,
    inlineRefs: false,
  });
  return addFormats(ajv).addSchema(contract, DOCUMENT);
}

/** The parameters of one place as one object; unknown ones are errors. */
function objectOf(contract: Contract, method: string, path: string, place: 'path' | 'query'): object {
  const here = parametersOf(contract, method, path).filter((parameter) => parameter.in === place);
  const properties = here.map(({ name, schema }): [string, object] => {
    // Outside of the document, a reference needs its name.
    return [name, '$ref' in schema ? { $ref: `${DOCUMENT}${String(schema.$ref)}` } : schema];
  });
  return {
    type: 'object',
    additionalProperties: false,
    required: here.filter(({ required }) => required).map(({ name }) => name),
    properties: Object.fromEntries(properties),
  };
}
