import { ownMembers } from '../../core/objects';
import { readOptions } from '../../core/options';

/** How the authorization server is asked about opaque tokens (RFC 7662). */
export interface IntrospectionOptions {
  /** URL of the introspection endpoint. Default: `introspection_endpoint` of the issuer's metadata. */
  readonly url?: string | undefined;
  /** Client credential of this API at the authorization server; sent by HTTP Basic (RFC 6749 section 2.3.1). */
  readonly clientId: string;
  /** Its secret. */
  readonly clientSecret: string;
  /** How long in ms a token counts as active without being asked about again; 0: not at all. Default 30000, at most 300000. */
  readonly cacheMs?: number | undefined;
}

/** Checked options. */
export interface IntrospectionSettings {
  readonly url: string | undefined;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly cacheMs: number;
}

/**
 * Checks the option `introspection` of `authenticate()`.
 *
 * @throws TypeError that does not quote the secret
 */
export function readIntrospection(
  options: IntrospectionOptions,
  checkUrl: (url: string, what: string) => void,
): IntrospectionSettings {
  const names = ['url', 'clientId', 'clientSecret', 'cacheMs'] as const;
  const read = readOptions('authenticate', options, names, 'introspection');
  const { clientSecret } = ownMembers(options);
  const url = read.string('url');
  if (url !== undefined) checkUrl(url, 'introspection.url');
  if (typeof clientSecret !== 'string' || clientSecret === '') {
    throw new TypeError('authenticate(): option "introspection.clientSecret" must be a non-empty string');
  }
  return {
    url,
    clientId: read.string('clientId') ?? read.refuse('clientId', 'the id of a client of the authorization server'),
    clientSecret,
    cacheMs: read.number('cacheMs', 30_000, { unit: 'milliseconds', min: 0, max: 300_000 }),
  };
}
