import type { IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';
import { readCredentials } from './client-authentication';
import type { PresentedCredentials } from './client-authentication';
import { parseForm } from './form';
import type { Form } from './form';
import { OAuthError, toOAuthError } from './oauth-error';

/** A form-encoded request of a client, read but not judged. */
export interface OAuthRequest {
  readonly form: Form;
  readonly credentials: PresentedCredentials | undefined;
  /** Address that it came from. */
  readonly address: string;
}

/** Answers on node's own terms: Express can mount it, and it needs nothing of Express. `next` gets what is no client's fault. */
export type OAuthHandler = (req: IncomingMessage, res: ServerResponse, next: (error: unknown) => void) => Promise<void>;

/** Counts a request; its headers stand on refusals too. Throws OAuthError for one too many. */
export type RequestLimit = (request: OAuthRequest, res: ServerResponse) => void;

const LARGEST_BODY_BYTES = 16 * 1024;
/** They belong into the body, and must not stand in the address (RFC 6749 section 2.3.1). */
const BODY_PARAMETERS = ['grant_type', 'scope', 'client_id', 'client_secret', 'token'];

/** Makes an endpoint that clients call with a form (RFC 6749 section 3.2): the steps in their order. */
export function oauthEndpoint(
  limit: RequestLimit | undefined,
  respond: (request: OAuthRequest) => object,
): OAuthHandler {
  return async function answerClient(req, res, next) {
    forbidStoring(res);
    try {
      requirePost(req);
      requireForm(req);
      refuseQuery(req);
      const request = readRequest(req, await readBody(req, res));
      limit?.(request, res);
      sendJson(res, 200, respond(request));
    } catch (error) {
      const refusal = toOAuthError(error);
      if (refusal) sendRefusal(res, refusal);
      else next(error);
    }
  };
}

/** RFC 6749 section 5.1; on errors too. */
function forbidStoring(res: ServerResponse): void {
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Pragma', 'no-cache');
}

function requirePost({ method }: IncomingMessage): void {
  if (method === 'POST') return;
  throw new OAuthError('invalid_request', 'This endpoint takes POST only.', 405, { Allow: 'POST' });
}

function requireForm({ headers }: IncomingMessage): void {
  if (/^application\/x-www-form-urlencoded\s*(;|$)/i.test(headers['content-type'] ?? '')) return;
  throw new OAuthError('invalid_request', 'The body must be sent as application/x-www-form-urlencoded.');
}

function refuseQuery({ url = '' }: IncomingMessage): void {
  const start = url.indexOf('?');
  if (start === -1) return;
  const query = new URLSearchParams(url.slice(start + 1));
  const misplaced = BODY_PARAMETERS.find((name) => query.has(name));
  if (misplaced === undefined) return;
  throw new OAuthError('invalid_request', `${misplaced} must be sent in the body, not in the address.`);
}

const parseBody = express.raw({ type: () => true, limit: LARGEST_BODY_BYTES });

interface ParsedMessage extends IncomingMessage {
  body?: unknown;
}

/** Rejects as body parsers do: with an error that has a 4xx `status`. */
function readBody(req: ParsedMessage, res: ServerResponse): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    parseBody(req, res, (error) => {
      if (error !== undefined) reject(error as Error);
      else resolve(Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0));
    });
  });
}

function readRequest(req: IncomingMessage, body: Uint8Array): OAuthRequest {
  const form = parseForm(body);
  return { form, credentials: readCredentials(form, authorizationOf(req)), address: addressOf(req) };
}

/** Node drops all but the first `Authorization` from `headers`. */
function authorizationOf(req: IncomingMessage): readonly string[] {
  return req.headers.authorization === undefined ? [] : (req.headersDistinct['authorization'] ?? []);
}

/** Inside another Express app that app says which proxies it believes. */
function addressOf(req: IncomingMessage & { readonly ip?: string | undefined }): string {
  return req.ip ?? req.socket.remoteAddress ?? '';
}

/** RFC 6749 section 5.2. */
function sendRefusal(res: ServerResponse, { error, message, status, headers }: OAuthError): void {
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  sendJson(res, status, { error, error_description: message });
}

function sendJson(res: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  res.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  });
  res.end(text);
}
