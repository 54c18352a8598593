import { option, type TableOf } from '../core/options';

/** How the authorization server is asked about opaque tokens (RFC 7662). */
export interface OpaqueOptions {
  /** URL of the introspection endpoint. Default: `introspection_endpoint` of the issuer's metadata. */
  readonly url?: string | undefined;
  /** Client id of this API at the authorization server. */
  readonly clientId: string;
  /** Its secret, sent by HTTP Basic (RFC 6749 section 2.3.1). */
  readonly clientSecret: string;
  /** How long in ms a token counts as active without being asked about again; 0: not at all. Default 30000, at most 300000. */
  readonly cacheMs?: number | undefined;
}

/** The option `opaque` of `authenticate()`. Its messages do not quote the secret. */
export const OPAQUE_OPTION = option.nested({
  url: option.string(),
  clientId: option.required(option.string(), 'the id of a client of the authorization server'),
  clientSecret: option.required(option.secret(1)),
  cacheMs: option.number({ unit: 'milliseconds', min: 0, max: 300_000 }, 30_000),
} satisfies TableOf<OpaqueOptions>);
