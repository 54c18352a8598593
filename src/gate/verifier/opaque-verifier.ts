import type { JsonObject } from '../net/strict-json';
import { clientUnit } from '../token/fair-queue';
import { claimsOfResponse, presetOfResponses } from '../token/introspection/claims';
import { introspectionEndpoint } from '../token/introspection/endpoint';
import { Introspector } from '../token/introspection/introspector';
import { scopeReader } from '../token/scopes';
import type { IssuerContext } from './issuer';
import type { GateSettings, IssuerSettings } from './read-options';
import { TrustedToken } from './trusted-token';
import type { Verifier } from './verifier';

/** Responses are kept: 5,000 of them at most. Metadata is within this too. */
const MAX_RESPONSE_BYTES = 65_536;

type OpaqueSettings = NonNullable<IssuerSettings['opaque']>;

/** Verifies opaque tokens by asking their issuer (RFC 7662). `close()` ends the open calls. */
export function opaqueVerifier(
  context: IssuerContext,
  opaque: OpaqueSettings,
  { clock, schedule, random, logger, fetch }: GateSettings,
): Verifier & { close(): void } {
  const { issuer, settings } = context;
  // Neither a floor nor the option needs the name of a client.
  const issueTimeCanBeAbsent = settings.generationClaim === undefined;
  const preset = presetOfResponses(settings.preset, issueTimeCanBeAbsent && settings.clientIds === undefined);
  const rules = { ...settings, preset, audiences: settings.opaqueAudiences, issueTimeCanBeAbsent };
  const claimsOf = (response: JsonObject): JsonObject => claimsOfResponse(response, rules);
  const policy = { rules, claimsOf, readScopes: scopeReader(preset.scopeClaims, settings.scopes) };
  const tokens = new Introspector<TrustedToken>({
    issuer,
    askAbout: introspectionEndpoint(opaque, settings, { fetch, schedule, maxBytes: MAX_RESPONSE_BYTES }),
    trust: (claims) => new TrustedToken(context, policy, claims),
    clientOf: ({ client_id: id }) => (typeof id === 'string' ? clientUnit(issuer, id) : undefined),
    cacheMs: opaque.cacheMs,
    clock,
    schedule,
    random,
    logger,
  });
  return {
    known: (token) => tokens.get(token)?.known(),
    verify: async (token, caller) => (await tokens.introspect(token, caller)).accept(),
    close: () => tokens.close(),
  };
}
