import { isObject, ownValue } from '../core/objects';
import { describe } from '../core/options';
import type { Reason } from '../core/reasons';
import { isJwsShaped, parseToken } from './jws';
import type { UnverifiedToken } from './jws';
import { namesAt } from './scopes';
import { PRESETS } from './presets';
import type { Preset } from './presets';
import { recognizeToken } from './recognize';

/** What the advice compares a token with, in the words of whoever reads it. */
export interface AdviceContext {
  readonly issuer: string;
  readonly preset: Preset;
  /** Present where opaque tokens are introspected. */
  readonly introspection?: object | undefined;
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
  if (!token) return context.introspection && !isJwsShaped(raw) ? undefined : adviceForText(raw);
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
    case 'insufficient_scope':
      return scopeAdvice(token.claims, context.preset);
    default:
      return undefined;
  }
}

/** Where servers put permissions; Keycloak also under `resource_access.<client>.roles`. */
const PERMISSION_CLAIMS = [['scope'], ['scp'], ['permissions'], ['roles'], ['realm_access', 'roles']] as const;
const MAX_CLIENTS = 5;

/** Which claims hold names that the preset does not read as scopes; `undefined`: none. */
export function scopeAdvice(claims: Readonly<Record<string, unknown>>, { scopeClaims }: Preset): string | undefined {
  const access = ownValue(claims, 'resource_access');
  // Every token of Keycloak has roles of this client, for its own pages.
  const clients = isObject(access) ? Object.keys(access).filter((client) => client !== 'account') : [];
  const ofClients = clients.slice(0, MAX_CLIENTS).map((client) => ['resource_access', client, 'roles'] as const);
  const read = scopeClaims.find((name) => Object.hasOwn(claims, name));
  const others = [...PERMISSION_CLAIMS, ...ofClients].filter((path) => {
    return namesAt(claims, path).some((name) => name !== '') && !(path.length === 1 && path[0] === read);
  });
  if (others.length === 0) return undefined;
  const written = others.map((path) => (path.some((name) => /[./:]/.test(name)) ? path : path.join('.')));
  const from = JSON.stringify(read === undefined ? written : [read, ...written]);
  return `the token also has names in ${others.map((path) => JSON.stringify(path.join('.'))).join(', ')}: if they are permissions, read them with the option scopes: { from: ${from} } of authenticate()`;
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
  if (parts === 1) {
    return 'the token is opaque, not a JWT: let the issuer make JWT access tokens for this API, or ask it about opaque ones with the option introspection of authenticate()';
  }
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
