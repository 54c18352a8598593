import type { ErrorObject } from 'ajv';

/** One place at which a request does not fit the contract. */
export interface RequestError {
  /** `/body/lines/0/quantity`, `/query/limit`, `/path/id`. */
  readonly path: string;
  readonly message: string;
}

/** A hostile body can be wrong in thousands of places: nobody reads more than these. */
const MAX_ERRORS = 20;
const MAX_NAME = 80;

/** Puts what ajv found into words for the caller. */
export function toRequestErrors(
  part: 'path' | 'query' | 'body',
  errors: readonly ErrorObject[] | null | undefined,
): readonly RequestError[] {
  return (errors ?? []).slice(0, MAX_ERRORS).map((error) => ({
    path: `/${part}${error.instancePath}${memberOf(error)}`,
    message: messageOf(error),
  }));
}

/** The member that is missing or too much: ajv names the object around it. */
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
