import { AuthError } from '../../core/errors';
import { ownMembers } from '../../core/objects';
import type { JsonObject } from '../../net/strict-json';
import type { Preset } from '../presets';
import { isBoundByDpop, type ClaimRules } from '../claims';

/**
 * Members in which servers name the kind of a token: `token_type` (RFC 7662 section 2.2), `token_use` (Ory Hydra), `typ`
 * (Keycloak). Some respond about refresh tokens too.
 */
const KIND_MEMBERS = ['token_type', 'token_use', 'typ'];
const ACCESS_TOKEN_KINDS = ['bearer', 'access_token', 'access', 'at+jwt'];

/**
 * The preset of introspection responses: the members which only some servers return (`sub`, `jti`) may be missing, client and
 * scopes can have the names of RFC 7662 section 2.2, also where the JWTs of this issuer have other claims.
 *
 * @param clientCanBeSubject - accepts a response without a client id, which is optional there
 */
export function presetOfResponses(preset: Preset, clientCanBeSubject: boolean): Preset {
  const clientIdClaims = [...new Set([...preset.clientIdClaims, 'client_id'])];
  const scopeClaims = [...preset.scopeClaims, 'scope'];
  return { ...preset, clientIdClaims, clientCanBeSubject, scopeClaims, requiredClaims: [], fixedClaims: [] };
}

/**
 * The claims in an introspection response, which are then checked like those of a JWT. `iss` may be missing, because the issuer
 * itself responded.
 *
 * @param rules - with the preset of responses
 * @throws AuthError `wrong_type`, `sender_constrained` or `invalid_claims`
 */
export function claimsOfResponse(
  response: JsonObject,
  { issuer, preset, issueTimeCanBeAbsent }: ClaimRules,
): JsonObject {
  for (const member of KIND_MEMBERS) checkKind(response[member], response);
  if (response['iat'] === undefined && !issueTimeCanBeAbsent) throw new AuthError('invalid_claims', WITHOUT_ISSUE_TIME);
  const hasClient = preset.clientIdClaims.some((name) => response[name] !== undefined);
  const { sub } = response;
  if (!hasClient && !(preset.clientCanBeSubject && typeof sub === 'string' && sub !== '')) {
    throw new AuthError('invalid_claims', WITHOUT_CLIENT);
  }
  return 'iss' in response ? response : ownMembers({ iss: issuer, ...response });
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
