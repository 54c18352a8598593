import express from 'express';
import type { NextFunction, Request, Response } from 'express';
import type { ClientRow } from '../storage/state';
import { formDecode, readCredentials } from './client-authentication';
import type { PresentedCredentials } from './client-authentication';
import { OAuthError } from './error';

/** Parameters of a request, each once; those without a value are left out (RFC 6749 section 3.2). */
export type Form = ReadonlyMap<string, string>;

/** What the steps of an OAuth endpoint have established so far (`res.locals`). */
export interface OAuthLocals extends Record<string, unknown> {
  form: Form;
  credentials: PresentedCredentials | undefined;
  /** Set once the client has presented its secret. */
  client: ClientRow;
  /** Set once the requested scopes may be granted. */
  scopes: readonly string[];
}

/** One step of an OAuth endpoint: calls `next()`, responds, or throws an OAuthError. */
export type Step = (req: Request, res: Response<object, OAuthLocals>, next: NextFunction) => void;

const LARGEST_BODY_BYTES = 16 * 1024;
/** They belong in the body and must not appear in the URL (RFC 6749 section 2.3.1). */
const BODY_PARAMETERS = ['grant_type', 'scope', 'client_id', 'client_secret', 'token'];
/** The one parameter that may be repeated (RFC 8707 section 2). It is not supported, and ignored. */
const REPEATABLE = 'resource';

/** The steps that read a form-encoded request of a client (RFC 6749 section 3.2). */
export function readOAuthRequest(): Step[] {
  return [
    forbidStoring,
    requirePost,
    requireForm,
    refuseQueryParameters,
    express.urlencoded({
      extended: false,
      limit: LARGEST_BODY_BYTES,
      parameterLimit: Infinity,
      verify: checkBody,
    }),
    readForm,
    readClientCredentials,
  ];
}

/** RFC 6749 section 5.1; on errors too. */
function forbidStoring(_req: Request, res: Response, next: NextFunction): void {
  res.set({ 'Cache-Control': 'no-store', Pragma: 'no-cache' });
  next();
}

function requirePost({ method }: Request, _res: Response, next: NextFunction): void {
  if (method === 'POST') return next();
  throw new OAuthError('invalid_request', 'This endpoint takes POST only.', 405, { Allow: 'POST' });
}

function requireForm({ headers }: Request, _res: Response, next: NextFunction): void {
  if (/^application\/x-www-form-urlencoded\s*(;|$)/i.test(headers['content-type'] ?? '')) return next();
  throw new OAuthError('invalid_request', 'The body must be sent as application/x-www-form-urlencoded.');
}

function refuseQueryParameters({ query }: Request, _res: Response, next: NextFunction): void {
  const misplaced = BODY_PARAMETERS.find((name) => Object.hasOwn(query, name));
  if (misplaced === undefined) return next();
  throw new OAuthError('invalid_request', `${misplaced} must be sent in the body, not in the URL.`);
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The parser of Express keeps broken encodings as text, and so could make another secret or scope of what was sent; and
 * it drops `__proto__`, repeated or not.
 */
function checkBody(_req: unknown, _res: unknown, body: Buffer): void {
  let text: string;
  try {
    text = utf8.decode(body);
  } catch {
    throw new OAuthError('invalid_request', 'The request body is not UTF-8.');
  }
  if (formDecode(text) === undefined) {
    throw new OAuthError(
      'invalid_request',
      'The request body is not properly form-encoded: a percent sign or byte is wrong.',
    );
  }
  const seen = new Set<string>();
  for (const name of new URLSearchParams(text).keys()) {
    if (seen.has(name)) refuseRepeated(name);
    seen.add(name);
  }
}

/** RFC 6749 section 3.2. A parameter name is the caller's text: only harmless ones are repeated in the description. */
function refuseRepeated(name: string): void {
  if (name === REPEATABLE) return;
  const shown = /^[a-z_]{1,40}$/.test(name) ? name : 'A parameter';
  throw new OAuthError('invalid_request', `${shown} must not be included more than once.`);
}

function readForm(req: Request, res: Response<object, OAuthLocals>, next: NextFunction): void {
  const parameters = Object.entries((req.body ?? {}) as Record<string, unknown>);
  // An app that mounts this one may have parsed the body already.
  for (const [name, value] of parameters) if (typeof value !== 'string') refuseRepeated(name);
  res.locals.form = new Map(
    parameters.filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== ''),
  );
  next();
}

/** Node drops all but the first `Authorization` from `headers`. */
function readClientCredentials(req: Request, res: Response<object, OAuthLocals>, next: NextFunction): void {
  res.locals.credentials = readCredentials(res.locals.form, req.headersDistinct['authorization'] ?? []);
  next();
}
