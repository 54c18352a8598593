import { ownValue } from '../core/objects';
import { describe } from '../core/options';
import type { Reason } from '../core/reasons';
import { parseToken } from './jws';
import type { UnverifiedToken } from './jws';
import { PRESETS } from './presets';
import type { Preset } from './presets';
import { recognizeToken } from './recognize';

/** What the advice compares a token with, in the words of whoever reads it. */
export interface AdviceContext {
  readonly issuer: string;
  readonly preset: Preset;
  /** Says how to set an option: `set TILLGATE_PRESET=keycloak`. */
  readonly set: (option: AdvisedOption, value: string) => string;
}

/** The options that advice names. */
export type AdvisedOption = 'issuer' | 'audience' | 'preset' | 'generationClaim' | 'maxTokenAgeSeconds';

/**
 * What an operator can change so that tokens like this one are accepted; `undefined` where the reason does not suggest
 * a wrong configuration. The text quotes claims: it must not become part of a response.
 */
export function configurationAdvice(reason: Reason, raw: string, context: AdviceContext): string | undefined {
  const token = parsed(raw);
  if (!token) return adviceForText(raw);
  const { set } = context;
  const recognized = recognizeToken(token);
  if (recognized && PRESETS[recognized.preset] !== context.preset && DEPENDS_ON_PRESET.has(reason)) {
    return `this token looks like ${recognized.preset} (${recognized.signs.join(', ')}): ${set('preset', recognized.preset)}`;
  }
  switch (reason) {
    case 'wrong_issuer': {
      const issuer = ownValue(token.claims, 'iss');
      const change = typeof issuer === 'string' ? `: ${set('issuer', issuer)}` : '';
      return `iss is ${describe(issuer)}, expected ${describe(context.issuer)}${difference(issuer, context.issuer)}${change}`;
    }
    case 'wrong_audience': {
      const audience: unknown = ownValue(token.claims, 'aud');
      const first: unknown = Array.isArray(audience) ? audience[0] : audience;
      if (typeof first !== 'string') return 'the token has no aud: let the authorization server add that of this API';
      return `aud is ${JSON.stringify(audience).slice(0, 200)}: ${set('audience', first)}, or let the authorization server add the aud of this API`;
    }
    case 'generation_missing':
      return `the issuer stamps no generation: ${set('generationClaim', 'iat')}, or let the authorization server add the claim`;
    case 'lifetime_too_long': {
      const [from, until] = [Number(ownValue(token.claims, 'iat')), Number(ownValue(token.claims, 'exp'))];
      return `tokens live for ${until - from} s: let the issuer shorten that, or ${set('maxTokenAgeSeconds', String(until - from))}`;
    }
    case 'algorithm_not_allowed':
      return `alg is ${describe(ownValue(token.header, 'alg'))}: let the issuer sign with an accepted one, such as RS256`;
    case 'wrong_type':
      return `typ is ${describe(ownValue(token.header, 'typ'))}: let the issuer make access tokens of RFC 9068, or select the preset of its vendor`;
    default:
      return undefined;
  }
}

const DEPENDS_ON_PRESET: ReadonlySet<Reason> = new Set<Reason>([
  'wrong_type',
  'invalid_claims',
  'generation_missing',
  'generation_invalid',
]);

function parsed(raw: string): UnverifiedToken | undefined {
  try {
    return parseToken(raw);
  } catch {
    return undefined;
  }
}

function adviceForText(raw: string): string {
  const parts = raw.split('.').length;
  if (parts === 5) return 'the token is encrypted (JWE, five parts): let the issuer make signed access tokens (JWS)';
  if (parts === 1) return 'the token is opaque, not a JWT: let the issuer make JWT access tokens for this API';
  return 'the token is not a JSON Web Token: compare it with what the token endpoint returned';
}

/** Differences between two issuers that are easy to overlook: they are compared byte for byte (RFC 9207 section 2.4). */
function difference(got: unknown, expected: string): string {
  if (typeof got !== 'string') return '';
  if (got.replace(/\/$/, '') === expected.replace(/\/$/, '')) return ' (the slash at the end)';
  if (got.replace(/^https?/, '') === expected.replace(/^https?/, '')) return ' (http and https)';
  if (got.toLowerCase() === expected.toLowerCase()) return ' (upper and lower case)';
  return '';
}
