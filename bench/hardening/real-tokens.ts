import { AUDIENCE, token } from '../../test/support/issuer';
import type { TokenParts } from '../../test/support/issuer';
import type { Shot } from '../../test/all/support/load';

export { AUDIENCE };

let serial = 0;

/** A token for now, never the same twice. */
export function tokenNow(issuer: string, parts: TokenParts = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: issuer,
    iat: now,
    exp: now + 3_600,
    jti: `t${serial++}`,
    generation: undefined,
    ...parts.claims,
  };
  return token({ ...parts, claims });
}

/** A GET with a bearer token. */
export function withToken(url: string, bearer: string): Shot {
  return { url, headers: { Authorization: `Bearer ${bearer}` } };
}
