import { clientUnit } from '../token/fair-queue';
import { introspectedClaimsCheck, presetOfResponses } from '../token/introspection/claims';
import { introspectionEndpoint } from '../token/introspection/endpoint';
import { Introspector } from '../token/introspection/introspector';
import { scopeReader } from '../token/scopes';
import { TrustedToken, type IssuerContext, type Verifier } from './issuer';
import type { GateSettings, IssuerSettings } from './read-options';

/** Responses are kept: 5,000 of them at most. Metadata is within this too. */
const MAX_RESPONSE_BYTES = 65_536;

/** Verifies opaque tokens by asking their issuer (RFC 7662). `close()` ends the open calls. */
export function opaqueVerifier(
  context: IssuerContext,
  settings: IssuerSettings,
  opaque: NonNullable<IssuerSettings['opaque']>,
  dependencies: GateSettings,
): Verifier & { close(): void } {
  const { issuer, authUrl, checkUrl, scopes, generationClaim, clientIds } = settings;
  const { clock, schedule, random, logger, fetch } = dependencies;
  // Neither a floor nor the option needs the name of a client.
  const issueTimeCanBeAbsent = generationClaim === undefined;
  const preset = presetOfResponses(settings.preset, issueTimeCanBeAbsent && clientIds === undefined);
  const rules = { ...settings, preset, audiences: settings.opaqueAudiences, issueTimeCanBeAbsent };
  const verifyClaims = introspectedClaimsCheck(rules, clock);
  const policy = { verifyClaims, readScopes: scopeReader(preset.scopeClaims, scopes), preset };
  const document = { issuer, authUrl, checkUrl, fetch, schedule, maxBytes: MAX_RESPONSE_BYTES };
  const tokens = new Introspector<TrustedToken>({
    ...{ issuer, clock, schedule, random, logger, cacheMs: opaque.cacheMs },
    askAbout: introspectionEndpoint({ ...document, ...opaque }),
    trust: (claims) => new TrustedToken(context, policy, claims),
    clientOf: ({ client_id: id }) => (typeof id === 'string' ? clientUnit(issuer, id) : undefined),
  });
  return {
    known: (token) => tokens.get(token)?.known(clock()),
    verify: async (token, caller) => (await tokens.introspect(token, caller)).accept(),
    close: () => tokens.close(),
  };
}
