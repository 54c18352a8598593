import { Router, type ErrorRequestHandler, type Request, type RequestHandler } from 'express';
import { invalidRequest, RequestError } from './errors';
import { parseScope } from './clients-api';
import type { ClientRow } from './store';
import { authenticateClient, readRequest, type OAuthResponse } from './token-request';
import { issueToken, publishedKeys, readToken, type Context } from './tokens';

/** Makes `/connect/token` (client credentials, RFC 6749 section 4.4) and `/connect/introspect` (RFC 7662). */
export function oauthEndpoints(context: Context): Router {
  const { store, limit } = context;
  const router = Router();
  router.all('/token', ...readRequest, limit.handler, grantToken);
  router.all('/introspect', ...readRequest, introspect);
  router.all('/authorize', refuseAuthorization);
  router.use(sendOAuthError);
  return router;

  function grantToken(_req: Request, res: OAuthResponse): void {
    const { form, credentials, plain } = res.locals;
    const grantType = form.get('grant_type');
    if (grantType === undefined) throw invalidRequest('grant_type is missing: send grant_type=client_credentials.');
    if (grantType !== 'client_credentials') {
      throw new RequestError(400, 'unsupported_grant_type', 'The only grant type here is client_credentials.');
    }
    // One row from here on: the token carries the generation that the secret was checked against.
    const client = authenticateClient(store.state, credentials, plain);
    res.json(issueToken(context, client, requestedScopes(form, client)));
  }

  /** A token that is not valid now, for any reason, is `active: false` and nothing else (RFC 7662 section 2.2). */
  function introspect(_req: Request, res: OAuthResponse): void {
    const { form, credentials, plain } = res.locals;
    authenticateClient(store.state, credentials, plain);
    const token = form.get('token');
    if (token === undefined) throw invalidRequest('token is missing: send the token to look at.');
    const claims = readToken(context, token);
    res.json(claims ? { active: true, token_type: 'Bearer', ...claims } : { active: false });
  }
}

/** Some clients read no metadata without `authorization_endpoint`, such as those of the Model Context Protocol. */
function refuseAuthorization(): never {
  const message = 'There are no users here: the only grant type is client_credentials, at the token endpoint.';
  throw new RequestError(400, 'unsupported_response_type', message);
}

/** All of the requested scopes or none: RFC 6749 section 3.3 leaves partial grants to the server. */
function requestedScopes(form: ReadonlyMap<string, string>, client: ClientRow): readonly string[] {
  const requested = form.get('scope');
  // Scope characters (RFC 6749 section 3.3) are all allowed in an error description (section 5.2).
  const registered = client.scopes.join(' ');
  if (requested === undefined) throw invalidScope(`scope is missing: ask for one or more of ${registered}.`);
  const scopes = parseScope(requested);
  if (!scopes) throw invalidScope('scope must be scope names separated by single spaces.');
  if (scopes.every((scope) => client.scopes.includes(scope))) return scopes;
  throw invalidScope(`The client is not registered with one of the scopes: it has ${registered}.`);
}

function invalidScope(message: string): RequestError {
  return new RequestError(400, 'invalid_scope', message);
}

/** Responds to errors of the OAuth endpoints with the body of RFC 6749 section 5.2. */
const sendOAuthError: ErrorRequestHandler = function sendOAuthError(error, _req, res, next) {
  const refusal = toRequestError(error);
  if (!refusal || res.headersSent) return next(error);
  res.locals['refusal'] = refusal;
  res.status(refusal.status).set(refusal.headers);
  res.json({ error: refusal.code, error_description: refusal.message });
};

/** Includes the 4xx errors of body parsers; `undefined` when the client is not at fault. */
function toRequestError(error: unknown): RequestError | undefined {
  if (error instanceof RequestError) return error;
  const status = (error as { status?: unknown } | null)?.status;
  if (status === 413) return new RequestError(413, 'invalid_request', 'The request body must not exceed 16 KiB.');
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  return invalidRequest('The request body could not be read: check its length and encoding.');
}

const CLIENT_AUTHENTICATION = ['client_secret_basic', 'client_secret_post'];

/** Makes the metadata document (RFC 8414 section 2); OpenID Connect Discovery requires the last two members. */
export function metadata({ settings: { issuer, scopes }, store }: Context): RequestHandler {
  const base = issuer.replace(/\/$/, '');
  return function showMetadata(_req, res) {
    const { clients, keys } = store.state;
    const registered = new Set([...clients.values()].flatMap((client) => client.scopes));
    res.set('Cache-Control', 'no-cache').json({
      issuer,
      authorization_endpoint: `${base}/connect/authorize`,
      token_endpoint: `${base}/connect/token`,
      token_endpoint_auth_methods_supported: CLIENT_AUTHENTICATION,
      introspection_endpoint: `${base}/connect/introspect`,
      introspection_endpoint_auth_methods_supported: CLIENT_AUTHENTICATION,
      jwks_uri: `${base}/.well-known/openid-configuration/jwks`,
      grant_types_supported: ['client_credentials'],
      scopes_supported: scopes ?? [...registered].sort(),
      response_types_supported: [],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [keys.signing.alg],
    });
  };
}

/** Makes the key set (RFC 7517 section 5). */
export function keySet({ settings: { clock }, store }: Context): RequestHandler {
  return function showKeySet(_req, res) {
    // A rotated key signs immediately: a cached key set would lack it.
    res.set('Cache-Control', 'no-cache').json({ keys: publishedKeys(store.state.keys, clock()) });
  };
}
