import type { Clock } from '../../core/clock';
import { AuthError } from '../../core/auth-error';
import { ownValue } from '../../core/objects';
import type { ClaimRules } from '../claims';
import { claimsVerifier } from '../verify';
import type { ClaimsVerifier } from '../verify';

/**
 * Members in which servers name the kind of a token: `token_type` (RFC 7662 section 2.2), `token_use` (Ory Hydra), `typ`
 * (Keycloak). Some respond about refresh tokens too.
 */
const KIND_MEMBERS = ['token_type', 'token_use', 'typ'];
const ACCESS_TOKEN_KINDS = ['bearer', 'access_token', 'access', 'at+jwt'];

/**
 * Makes the check of introspection responses: that of the claims of a JWT, except that `iss` may be missing, because the
 * issuer itself responded, and that the members which only some servers return (`sub`, `jti`) may be.
 */
export function introspectedClaimsVerifier(rules: ClaimRules, clock: Clock): ClaimsVerifier {
  const { preset, issuer } = rules;
  const clientIdClaims = [...preset.clientIdClaims, 'client_id'];
  const verifyClaims = claimsVerifier(
    { ...rules, preset: { ...preset, clientIdClaims, requiredClaims: [], fixedClaims: {} } },
    clock,
  );
  return function verifyIntrospected({ claims }) {
    for (const member of KIND_MEMBERS) checkKind(ownValue(claims, member), rules);
    return verifyClaims({ claims: Object.hasOwn(claims, 'iss') ? claims : { iss: issuer, ...claims } });
  };
}

function checkKind(kind: unknown, { confirmations }: ClaimRules): void {
  if (kind === undefined) return;
  const name = typeof kind === 'string' ? kind.toLowerCase() : undefined;
  if (name === 'dpop') {
    if (!confirmations.includes('jkt')) throw new AuthError('sender_constrained');
  } else if (name === undefined || !ACCESS_TOKEN_KINDS.includes(name)) {
    throw new AuthError('wrong_type', { privateDetail: 'the introspection response is about another kind of token' });
  }
}
