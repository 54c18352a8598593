import { AuthError } from '../core/errors';
import type { Clock } from '../core/clock';
import { ownMembers } from '../core/objects';
import { freezeJson } from '../net/strict-json';
import type { JsonObject } from '../net/strict-json';
import { claimsCheck, isBoundByDpop } from './verify';
import type { ClaimRules, ClaimsCheck } from './verify';

/**
 * Members in which servers name the kind of a token: `token_type` (RFC 7662 section 2.2), `token_use` (Ory Hydra), `typ`
 * (Keycloak). Some respond about refresh tokens too.
 */
const KIND_MEMBERS = ['token_type', 'token_use', 'typ'];
const ACCESS_TOKEN_KINDS = ['bearer', 'access_token', 'access', 'at+jwt'];

/**
 * Makes the check of introspection responses: that of the claims of a JWT, except that `iss` may be missing, because the
 * issuer itself responded, and that the members which only some servers return (`sub`, `jti`) may be.
 *
 * @param canLackClient - accepts a response without a client id (optional in RFC 7662 section 2.2), whose client is then called
 *   `sub:<sub>`: the name of a user alone could be that of a client
 */
export function introspectedClaimsCheck(rules: ClaimRules, canLackClient: boolean, clock: Clock): ClaimsCheck {
  const { preset, issuer } = rules;
  const clientIdClaims = [...new Set([...preset.clientIdClaims, 'client_id'])];
  const relaxed = { ...rules, preset: { ...preset, clientIdClaims, requiredClaims: [], fixedClaims: [] } };
  const verifyClaims = claimsCheck(relaxed, clock);

  /** The claims with the name of their client, for the check only. */
  function withClient(claims: JsonObject): JsonObject {
    const { sub } = claims;
    if (clientIdClaims.some((name) => claims[name] !== undefined)) return claims;
    if (!canLackClient || typeof sub !== 'string' || sub === '') throw new AuthError('invalid_claims', WITHOUT_CLIENT);
    return ownMembers({ ...claims, client_id: `sub:${sub}` });
  }

  return function verifyIntrospected(given) {
    for (const member of KIND_MEMBERS) checkKind(given[member], given);
    if (given['iat'] === undefined && !rules.issueTimeCanBeAbsent) {
      throw new AuthError('invalid_claims', WITHOUT_ISSUE_TIME);
    }
    const claims = 'iss' in given ? given : ownMembers({ iss: issuer, ...given });
    return { ...verifyClaims(withClient(claims)), claims: freezeJson(claims) };
  };
}

const WITHOUT_CLIENT = {
  privateDetail:
    'the introspection response has no client_id: have the authorization server return it (optional in RFC 7662); with ' +
    'generationClaim: false and without clientIds, sub is enough',
};

const WITHOUT_ISSUE_TIME = {
  privateDetail:
    'iat is missing in the introspection response: have the authorization server return it (optional in RFC 7662); with ' +
    'generationClaim: false it is not needed',
};

/** RFC 9449 section 6.2: a token of type DPoP is bound to a key, which its `cnf` names. Without one no proof can be checked. */
function checkKind(kind: unknown, claims: JsonObject): void {
  if (kind === undefined) return;
  const name = typeof kind === 'string' ? kind.toLowerCase() : undefined;
  if (name === 'dpop') {
    if (isBoundByDpop(claims)) return;
    throw new AuthError('sender_constrained', { privateDetail: 'the token is of type DPoP, and cnf.jkt is missing' });
  }
  if (name === undefined || !ACCESS_TOKEN_KINDS.includes(name)) {
    throw new AuthError('wrong_type', { privateDetail: 'the introspection response is about another kind of token' });
  }
}
