import type { RequestHandler } from 'express';
import { parseScope } from '../clients/input';
import type { ClientRow, State } from '../storage/state';
import { authenticateClient } from './client-authentication';
import { OAuthError } from './error';
import { readOAuthRequest } from './request';
import type { Step } from './request';
import type { Tokens } from './tokens';

/** What the token endpoint works on. */
export interface TokenEndpointOptions {
  readonly state: () => State;
  readonly tokens: Tokens;
  /** Counts every well-formed request, good or not. */
  readonly limit: RequestHandler;
}

/** Makes the steps of `POST /connect/token`: the client credentials grant (RFC 6749 section 4.4). */
export function tokenEndpoint({ state, tokens, limit }: TokenEndpointOptions): Step[] {
  return [
    ...readOAuthRequest(),
    limit,
    requireClientCredentialsGrant,
    function authenticate(_req, res, next) {
      // One row from here on: the token carries the generation that the secret was checked against.
      res.locals.client = authenticateClient(state(), res.locals.credentials);
      next();
    },
    grantScopes,
    function issueToken(_req, res) {
      res.json(tokens.issue(res.locals.client, res.locals.scopes));
    },
  ];
}

/** @throws OAuthError `invalid_request` or `unsupported_grant_type` (RFC 6749 section 5.2) */
const requireClientCredentialsGrant: Step = (_req, res, next) => {
  const grantType = res.locals.form.get('grant_type');
  if (grantType === 'client_credentials') return next();
  if (grantType === undefined) {
    throw new OAuthError('invalid_request', 'grant_type is missing: send grant_type=client_credentials.');
  }
  throw new OAuthError('unsupported_grant_type', 'The only grant type here is client_credentials.');
};

/**
 * Grants all of the requested scopes or none: RFC 6749 section 3.3 leaves partial grants to the server.
 *
 * @throws OAuthError `invalid_scope`
 */
const grantScopes: Step = (_req, res, next) => {
  const { form, client } = res.locals;
  const requested = form.get('scope');
  if (requested === undefined) {
    throw new OAuthError('invalid_scope', `scope is missing: ask for one or more of ${registeredScopes(client)}.`);
  }
  const scopes = parseScope(requested);
  if (!scopes) throw new OAuthError('invalid_scope', 'scope must be scope names separated by single spaces.');
  if (!scopes.every((scope) => client.scopes.includes(scope))) {
    throw new OAuthError(
      'invalid_scope',
      `The client is not registered with one of the scopes: it has ${registeredScopes(client)}.`,
    );
  }
  res.locals.scopes = scopes;
  next();
};

/** Scope characters (RFC 6749 section 3.3) are all allowed in an error description (section 5.2). */
function registeredScopes({ scopes }: ClientRow): string {
  return scopes.join(' ');
}
