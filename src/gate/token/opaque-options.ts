import { matching, option, url, type TableOf } from '../core/options';

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
  url: option.variable('TILLGATE_INTROSPECTION_URL', option.string(), {
    ...url({ query: true }),
    fallback: { words: 'discovered' },
    example: 'https://login.example.com/connect/introspect',
  }),
  clientId: option.variable(
    'TILLGATE_INTROSPECTION_CLIENT_ID',
    option.required(option.string(), 'the id of a client of the authorization server'),
    {
      ...matching(/^\P{Cc}+$/u, 'a client id without control characters'),
      fallback: { words: 'opaque tokens are refused' },
      example: 'orders-api',
    },
  ),
  clientSecret: option.variable('TILLGATE_INTROSPECTION_CLIENT_SECRET', option.required(option.secret(1)), {
    ...matching(/^\P{Cc}+$/u, 'a client secret without line breaks or other control characters'),
    fallback: { words: 'none' },
    example: '"$(cat secret-file)"',
  }),
  cacheMs: option.number({ unit: 'milliseconds', min: 0, max: 300_000 }, 30_000),
} satisfies TableOf<OpaqueOptions>);
