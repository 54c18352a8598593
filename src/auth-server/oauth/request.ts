import express from 'express';
import type { NextFunction, Request, Response } from 'express';
import { invalidRequest, RequestError } from '../errors';
import { formDecode, readCredentials } from './client-authentication';
import type { Credentials } from './client-authentication';

/** Parameters of a request, each once; those without a value are left out (RFC 6749 section 3.2). */
export type Form = ReadonlyMap<string, string>;

/** What `readRequest` has found in the body and the headers. */
export interface OAuthLocals extends Record<string, unknown> {
  form: Form;
  credentials: Credentials | undefined;
}

export type OAuthResponse = Response<object, OAuthLocals>;

const MAX_BODY_BYTES = 16 * 1024;
/** They belong in the body and must not appear in the URL (RFC 6749 section 2.3.1). */
const BODY_PARAMETERS = ['grant_type', 'scope', 'client_id', 'client_secret', 'token'];
/** The one parameter that may be repeated (RFC 8707 section 2). It is not supported, and ignored. */
const REPEATABLE = 'resource';

/** Reads the form-encoded request of a client (RFC 6749 section 3.2). */
export const readRequest = [
  checkHead,
  express.urlencoded({ extended: false, limit: MAX_BODY_BYTES, parameterLimit: Infinity, verify: checkBody }),
  readForm,
];

function checkHead({ method, headers, query }: Request, res: Response, next: NextFunction): void {
  // RFC 6749 section 5.1; on errors too.
  res.set({ 'Cache-Control': 'no-store', Pragma: 'no-cache' });
  if (method !== 'POST') {
    throw new RequestError(405, 'invalid_request', 'This endpoint takes POST only.', { Allow: 'POST' });
  }
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(headers['content-type'] ?? '')) {
    throw invalidRequest('The body must be sent as application/x-www-form-urlencoded.');
  }
  const misplaced = BODY_PARAMETERS.find((name) => Object.hasOwn(query, name));
  if (misplaced !== undefined) throw invalidRequest(`${misplaced} must be sent in the body, not in the URL.`);
  next();
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
    throw invalidRequest('The request body is not UTF-8.');
  }
  if (formDecode(text) === undefined) {
    throw invalidRequest('The request body is not properly form-encoded: a percent sign or byte is wrong.');
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
  throw invalidRequest(`${shown} must not be included more than once.`);
}

function readForm(req: Request, res: OAuthResponse, next: NextFunction): void {
  const form = new Map<string, string>();
  for (const [name, value] of Object.entries((req.body ?? {}) as Record<string, unknown>)) {
    // An app that mounts this one may have parsed the body already, repeated parameters included.
    if (typeof value !== 'string') refuseRepeated(name);
    else if (value !== '') form.set(name, value);
  }
  res.locals.form = form;
  // Node drops all but the first Authorization from `headers`.
  res.locals.credentials = readCredentials(form, req.headersDistinct['authorization'] ?? []);
  next();
}
