import { Router } from 'express';
import type { Request } from 'express';
import { parseScope } from '../clients/input';
import type { Context } from '../context';
import { invalidRequest, RequestError, sendOAuthError } from '../errors';
import type { ClientRow } from '../storage/state';
import { authenticateClient } from './client-authentication';
import { oauthLimits } from './limits';
import { readRequest } from './request';
import type { Form, OAuthResponse } from './request';
import { issueToken, readToken } from './tokens';

/**
 * Makes the endpoints under `/connect`: `/token`, for the client credentials grant (RFC 6749 section 4.4), and
 * `/introspect`, for every registered client (RFC 7662).
 */
export function oauthEndpoints(context: Context): Router {
  const { settings, store } = context;
  const limits = oauthLimits(settings);
  const router = Router();
  router.all('/token', ...readRequest, limits.tokens, grantToken);
  router.all('/introspect', ...readRequest, limits.wrongSecrets, introspect);
  router.use(sendOAuthError);
  return router;

  function grantToken(_req: Request, res: OAuthResponse): void {
    const { form, credentials } = res.locals;
    requireClientCredentialsGrant(form);
    // One row from here on: the token carries the generation that the secret was checked against.
    const client = authenticateClient(store.state, credentials);
    res.json(issueToken(context, client, requestedScopes(form, client)));
  }

  /** A token that is not valid now, for any reason, is `active: false` and nothing else (RFC 7662 section 2.2). */
  function introspect(_req: Request, res: OAuthResponse): void {
    const { form, credentials } = res.locals;
    authenticateClient(store.state, credentials);
    const token = form.get('token');
    if (token === undefined) throw invalidRequest('token is missing: send the token to look at.');
    const claims = readToken(context, token);
    res.json(claims ? { active: true, token_type: 'Bearer', ...claims } : { active: false });
  }
}

function requireClientCredentialsGrant(form: Form): void {
  const grantType = form.get('grant_type');
  if (grantType === 'client_credentials') return;
  if (grantType === undefined) throw invalidRequest('grant_type is missing: send grant_type=client_credentials.');
  throw new RequestError(400, 'unsupported_grant_type', 'The only grant type here is client_credentials.');
}

/** All of the requested scopes or none: RFC 6749 section 3.3 leaves partial grants to the server. */
function requestedScopes(form: Form, client: ClientRow): readonly string[] {
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
