import type { RequestHandler } from 'express';
import type { State } from '../storage/state';
import { authenticateClient } from './client-authentication';
import { OAuthError } from './error';
import { readOAuthRequest } from './request';
import type { Step } from './request';
import type { Tokens } from './tokens';

/** What the introspection endpoint works on. */
export interface IntrospectionOptions {
  readonly state: () => State;
  readonly tokens: Tokens;
  /** Refuses callers that have presented too many wrong secrets. */
  readonly limit: RequestHandler;
}

/**
 * Makes the steps of `POST /connect/introspect` (RFC 7662), for every registered client. The response for a token that
 * is not valid now, for any reason, is `active: false` alone (section 2.2).
 */
export function introspectionEndpoint({ state, tokens, limit }: IntrospectionOptions): Step[] {
  return [
    ...readOAuthRequest(),
    limit,
    function authenticate(_req, res, next) {
      res.locals.client = authenticateClient(state(), res.locals.credentials);
      next();
    },
    function introspect(_req, res) {
      const token = res.locals.form.get('token');
      if (token === undefined) throw new OAuthError('invalid_request', 'token is missing: send the token to look at.');
      const claims = tokens.read(token);
      res.json(claims ? { active: true, token_type: 'Bearer', ...claims } : { active: false });
    },
  ];
}
