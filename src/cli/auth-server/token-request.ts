import express from 'express';
import type { NextFunction, Request, Response } from 'express';
import { attempt } from 'tillgate/internal';
import { matchesSecret } from './client';
import { invalidRequest, RequestError } from './errors';
import type { ClientRow, State } from './store';

/** The response of a request that `readRequest` has read. */
export type OAuthResponse = Response<
  object,
  {
    /** Parameters of the body, each once; those without a value are left out (RFC 6749 section 3.2). */
    form: ReadonlyMap<string, string>;
    /** An id and a secret as they were presented, not checked yet. */
    credentials: Credentials | undefined;
    /** The same by HTTP Basic as a client means them that does not form-encode them. For the log only. */
    plain: Credentials | undefined;
  }
>;

interface Credentials {
  readonly clientId: string;
  readonly secret: string;
}

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

/** The parser of Express accepts broken encodings, which could become another secret, and drops `__proto__`. */
function checkBody(_req: unknown, _res: unknown, body: Buffer): void {
  const text = attempt(() => utf8.decode(body));
  if (text === undefined) throw invalidRequest('The request body is not UTF-8.');
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
  const authorization = req.headersDistinct['authorization'] ?? [];
  res.locals.credentials = readCredentials(form, authorization);
  res.locals.plain = parsePlain(authorization[0]);
  next();
}

/** Longer than any registered id and secret; not decoded. */
const MAX_BASIC_LENGTH = 4_096;

/**
 * Reads the client's credentials from HTTP Basic or from the body (RFC 6749 section 2.3.1).
 *
 * @param authorization - every Authorization header of the request
 * @returns `undefined` for missing and unreadable credentials: both get the response for a wrong secret
 * @throws RequestError `invalid_request` when the client uses two methods (section 2.3), or two ids.
 */
function readCredentials(form: ReadonlyMap<string, string>, authorization: readonly string[]): Credentials | undefined {
  const [header, ...more] = authorization;
  if (more.length > 0) throw invalidRequest('Send no more than one Authorization header.');
  const clientId = form.get('client_id');
  const secret = form.get('client_secret');
  if (header === undefined) return clientId && secret ? { clientId, secret } : undefined;
  if (secret !== undefined) {
    if (/^bearer /i.test(header)) throw invalidRequest('The Authorization header has an access token: leave it out.');
    throw invalidRequest('Send the client secret in the Authorization header or in the body, not in both.');
  }
  const credentials = parseBasic(header);
  if (credentials && clientId !== undefined && clientId !== credentials.clientId) {
    throw invalidRequest('The client_id in the body is not the one of the Authorization header.');
  }
  return credentials;
}

/**
 * Finds the client that presents its secret.
 *
 * @throws RequestError `invalid_client`, with the same text and after the same work for missing credentials, an unknown
 * client, a wrong secret and a disabled client.
 */
export function authenticateClient(
  { clients }: State,
  credentials: Credentials | undefined,
  plain?: Credentials,
  compare?: Parameters<typeof matchesSecret>[2],
): ClientRow {
  const row = credentials && clients.get(credentials.clientId);
  const matches = matchesSecret(row?.secrets ?? [], credentials?.secret ?? '', compare);
  if (row && matches && !row.disabled) return row;
  const isPlain = plain && matchesSecret(clients.get(plain.clientId)?.secrets ?? [], plain.secret, compare);
  // RFC 6749 section 5.2 asks for the scheme that the client used; RFC 9110 section 15.5.2 for one on every 401.
  const challenge = { 'WWW-Authenticate': 'Basic realm="token"' };
  const cause = causeOf(row, matches, isPlain === true, credentials !== undefined);
  throw new RequestError(401, 'invalid_client', 'Client authentication failed.', challenge, cause);
}

/** Why a client was refused, for the operator. */
function causeOf(row: ClientRow | undefined, matches: boolean, isPlain: boolean, isRead: boolean): string {
  if (row && matches) return 'disabled client';
  if (isPlain) return 'sent without form-encoding';
  if (!isRead) return 'no credentials that can be read';
  return row?.deleted === false ? 'wrong secret' : 'unknown client';
}

/** Id and secret are form-encoded, then joined by a colon (RFC 6749 section 2.3.1, RFC 7617 section 2). */
function parseBasic(header: string): Credentials | undefined {
  const [id = '', ...rest] = textOfBasic(header).split(':');
  const clientId = formDecode(id);
  const secret = formDecode(rest.join(':'));
  return clientId && secret ? { clientId, secret } : undefined;
}

/** Not decoded: the secrets of this server have no colon, an id may have some. */
function parsePlain(header = ''): Credentials | undefined {
  const [, clientId, secret] = /^(.+):([^:]+)$/.exec(textOfBasic(header)) ?? [];
  return clientId && secret ? { clientId, secret } : undefined;
}

/** User id and password (RFC 7617 section 2); empty when they cannot be read. */
function textOfBasic(header: string): string {
  if (header.length > MAX_BASIC_LENGTH) return '';
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header)?.[1] ?? '';
  return encoded.length % 4 === 1 ? '' : Buffer.from(encoded, 'base64').toString('utf8');
}

/** Decodes a form-encoded text (RFC 6749 appendix B); `undefined` when it is broken or not UTF-8. */
function formDecode(text: string): string | undefined {
  return attempt(() => decodeURIComponent(text.replaceAll('+', ' ')));
}
