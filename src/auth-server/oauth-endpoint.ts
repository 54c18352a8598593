import express from 'express';
import type { Request, RequestHandler } from 'express';
import { readCredentials } from './client-authentication';
import type { PresentedCredentials } from './client-authentication';
import { parseForm } from './form';
import type { Form } from './form';
import { OAuthError } from './oauth-error';

/** A form-encoded request of a client, read but not judged. */
export interface OAuthRequest {
  readonly form: Form;
  readonly credentials: PresentedCredentials | undefined;
}

/** A handler behind `readRequest`. */
export type OAuthHandler = RequestHandler<Record<string, string>, unknown, unknown, unknown, { oauth: OAuthRequest }>;

const LARGEST_BODY_BYTES = 16 * 1024;
/** They belong into the body, and must not stand in the address (RFC 6749 section 2.3.1). */
const BODY_PARAMETERS = ['grant_type', 'scope', 'client_id', 'client_secret', 'token'];

/** Makes an endpoint that clients call with a form (RFC 6749 section 3.2): the steps in their order. */
export function oauthEndpoint(
  limit: OAuthHandler | undefined,
  respond: (request: OAuthRequest) => object,
): OAuthHandler[] {
  return [
    noStore,
    postOnly,
    requireForm,
    refuseQuery,
    express.raw({ type: () => true, limit: LARGEST_BODY_BYTES }) as OAuthHandler,
    readRequest,
    ...(limit ? [limit] : []),
    function answer(_req, res) {
      res.json(respond(res.locals.oauth));
    },
  ];
}

/** RFC 6749 section 5.1; on errors too. */
const noStore: OAuthHandler = function noStore(_req, res, next) {
  res.set({ 'Cache-Control': 'no-store', Pragma: 'no-cache' });
  next();
};

const postOnly: OAuthHandler = function postOnly(req, _res, next) {
  if (req.method === 'POST') return next();
  throw new OAuthError('invalid_request', 'This endpoint takes POST only.', 405, { Allow: 'POST' });
};

const requireForm: OAuthHandler = function requireForm(req, _res, next) {
  if (/^application\/x-www-form-urlencoded\s*(;|$)/i.test(req.headers['content-type'] ?? '')) return next();
  throw new OAuthError('invalid_request', 'The body must be sent as application/x-www-form-urlencoded.');
};

const refuseQuery: OAuthHandler = function refuseQuery(req, _res, next) {
  const query = new URLSearchParams(req.url.split('?').slice(1).join('?'));
  const misplaced = BODY_PARAMETERS.find((name) => query.has(name));
  if (misplaced === undefined) return next();
  throw new OAuthError('invalid_request', `${misplaced} must be sent in the body, not in the address.`);
};

const readRequest: OAuthHandler = function readRequest(req, res, next) {
  const form = parseForm(Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0));
  res.locals.oauth = { form, credentials: readCredentials(form, authorizationOf(req as Request)) };
  next();
};

/** Node drops all but the first `Authorization` from `headers`. */
function authorizationOf(req: Request): readonly string[] {
  return req.headersDistinct['authorization'] ?? [];
}
