import { ownMembers } from '../core/objects';
import { isList, readOptions } from '../core/options';
import type { OptionReader } from '../core/options';
import { PRESET_NAMES } from '../core/preset-names';
import { hasUserInfo } from '../core/urls';
import type { GenerationSource } from '../generation/log';
import { ALGORITHMS, readAlgorithms } from '../token/algorithms';
import type { Algorithm } from '../token/algorithms';
import type { Confirmation } from '../token/claims';
import { PRESETS } from '../token/presets';
import type { Preset } from '../token/presets';
import { readScopeRule } from '../token/scope-options';
import type { ScopeRule } from '../token/scopes';
import { readIntrospection } from '../token/introspection/endpoint';
import type { IntrospectionSettings } from '../token/introspection/endpoint';
import type { Jwks } from '../token/keys/key-set';
import type { IssuerOptions } from './options';

/** Checked options of one issuer. */
export interface IssuerSettings {
  readonly issuer: string;
  readonly audiences: readonly string[] | false;
  readonly clientIds: readonly string[] | undefined;
  readonly authUrl: string;
  readonly keys: Jwks | undefined;
  readonly jwksUri: string | undefined;
  readonly preset: Preset;
  readonly algorithms: readonly Algorithm[];
  /** `undefined`: each name in the claim of the preset is a scope. */
  readonly scopes: ScopeRule | undefined;
  /** Name of the claim; `undefined`: the check is off. */
  readonly generationClaim: string | undefined;
  readonly generationSource: GenerationSource | string | undefined;
  readonly maxStalenessMs: number;
  readonly maxSilenceMs: number;
  readonly onStale: 'reject' | 'accept';
  readonly pollMs: number;
  readonly readTimeoutMs: number;
  /** `undefined`: opaque tokens are refused. */
  readonly introspection: IntrospectionSettings | undefined;
  readonly keysMaxAgeMs: number;
  readonly keysStaleMs: number;
  readonly clockToleranceMs: number;
  readonly maxTokenAgeMs: number;
  readonly confirmations: readonly Confirmation[];
  /** Throws a TypeError for a URL without TLS. */
  readonly checkUrl: (url: string, what: string) => void;
}

/** Names of the options of one issuer. */
export const ISSUER_KEYS = [
  'issuer',
  'audience',
  'clientIds',
  'authUrl',
  'jwksUri',
  'keys',
  'preset',
  'algorithms',
  'scopes',
  'generationClaim',
  'generationSource',
  'maxStalenessMs',
  'maxSilenceMs',
  'onStale',
  'pollMs',
  'readTimeoutMs',
  'introspection',
  'keysMaxAgeMs',
  'keysStaleMs',
  'clockToleranceSeconds',
  'maxTokenAgeSeconds',
] as const satisfies readonly (keyof IssuerOptions)[];

type Key = (typeof ISSUER_KEYS)[number];

/**
 * Checks the options of one issuer; `alsoKnown` are the names that may stand next to them.
 *
 * @throws TypeError
 */
export function readIssuer(
  given: IssuerOptions,
  alsoKnown: readonly string[],
  { checkUrl, confirmations }: Pick<IssuerSettings, 'checkUrl' | 'confirmations'>,
): IssuerSettings {
  const read: OptionReader<Key> = readOptions('authenticate', given, [...ISSUER_KEYS, ...(alsoKnown as Key[])]);
  const options = ownMembers(given);
  const issuer = read.string('issuer') ?? read.refuse('issuer', "the issuer's URL, exactly as in the token's iss");
  // The issuer is in every log line, also where nothing is fetched from it.
  if (URL.canParse(issuer) && hasUserInfo(issuer)) read.refuse('issuer', 'a URL without user name and password');
  refuseQuery(read, 'issuer', issuer);
  const authUrl = read.string('authUrl') ?? issuer;
  refuseQuery(read, 'authUrl', authUrl);
  const jwksUri = read.string('jwksUri');
  if (options.keys !== undefined && (typeof options.keys !== 'object' || options.keys === null)) {
    read.refuse('keys', 'a JSON Web Key Set');
  }
  if (options.keys && jwksUri !== undefined) throw new TypeError('authenticate(): give "keys" or "jwksUri", not both');
  // With given keys nothing is fetched from the issuer, so its name need not be a URL.
  if (!options.keys && jwksUri === undefined) checkUrl(authUrl, options.authUrl === undefined ? 'issuer' : 'authUrl');
  if (jwksUri !== undefined) checkUrl(jwksUri, 'jwksUri');
  const introspection =
    options.introspection === undefined ? undefined : readIntrospection(options.introspection, checkUrl);
  if (introspection && !introspection.url) checkUrl(authUrl, options.authUrl === undefined ? 'issuer' : 'authUrl');
  // Schemes have no case (RFC 3986 section 3.1): "HTTP:" does not bypass the check.
  if (typeof options.generationSource === 'string' && /^https?:/i.test(options.generationSource)) {
    checkUrl(options.generationSource, 'generationSource');
  }
  const preset: Preset = PRESETS[read.oneOf('preset', PRESET_NAMES, 'rfc9068')];
  const generationClaim = readGenerationClaim(read, options.generationClaim, preset);
  // Floors are kept for maxTokenAgeSeconds: without iat nothing says that a token is not older.
  if (introspection?.acceptWithout.includes('iat') && generationClaim !== undefined) {
    throw new TypeError(
      'authenticate(): option "introspection.acceptWithout" can have "iat" only with generationClaim: false',
    );
  }
  return {
    issuer,
    audiences: readAudiences(read, options.audience, preset),
    clientIds:
      options.clientIds && (readStrings(options.clientIds) ?? read.refuse('clientIds', 'an array of client ids')),
    authUrl,
    keys: options.keys,
    jwksUri,
    preset,
    algorithms:
      readAlgorithms(options.algorithms ?? ALGORITHMS) ??
      read.refuse('algorithms', `an array with some of ${ALGORITHMS.join(', ')}`),
    scopes: options.scopes === undefined ? undefined : readScopeRule(options.scopes),
    generationClaim,
    generationSource: readSource(read, options.generationSource),
    maxStalenessMs: read.number('maxStalenessMs', 60_000, { unit: 'milliseconds', min: 1 }),
    maxSilenceMs: read.number('maxSilenceMs', 900_000, { unit: 'milliseconds', min: 1 }),
    onStale: read.oneOf('onStale', ['reject', 'accept'], 'reject'),
    pollMs: read.number('pollMs', 5_000, { unit: 'milliseconds', min: 10 }),
    readTimeoutMs: read.number('readTimeoutMs', 5_000, { unit: 'milliseconds', min: 1, max: 600_000 }),
    introspection,
    keysMaxAgeMs: read.number('keysMaxAgeMs', 600_000, { unit: 'milliseconds', min: 1_000 }),
    keysStaleMs: read.number('keysStaleMs', 3_600_000, { unit: 'milliseconds', min: 0 }),
    clockToleranceMs: 1000 * read.number('clockToleranceSeconds', 10, { unit: 'seconds', min: 0, max: 300 }),
    maxTokenAgeMs: 1000 * read.number('maxTokenAgeSeconds', 86_400, { unit: 'seconds', min: 1 }),
    confirmations,
    checkUrl,
  };
}

/** An issuer is a URL without a query and a fragment (RFC 8414 section 2): its metadata would be that of another one. */
export function refuseQuery<Key extends string>(read: OptionReader<Key>, key: Key, url: string): void {
  if (/^https?:[^?#]*[?#]/i.test(url)) read.refuse(key, 'a URL without a query and a fragment');
}

function readAudiences(
  read: OptionReader<Key>,
  audience: IssuerOptions['audience'],
  preset: Preset,
): readonly string[] | false {
  if (audience === false && preset.audienceCanBeAbsent) return false;
  const orFalse = preset.audienceCanBeAbsent ? ', or false to accept tokens without one' : '';
  return (
    readStrings(audience) ??
    read.refuse('audience', `the aud of your API: a non-empty string, or an array of them${orFalse}`)
  );
}

/** One non-empty string or several, as an array; `undefined` for anything else. */
export function readStrings(value: unknown): readonly string[] | undefined {
  const strings: unknown = typeof value === 'string' ? [value] : value;
  const fits = isList(strings) && strings.length > 0 && strings.every((one) => typeof one === 'string' && one);
  return fits ? [...(strings as string[])] : undefined;
}

function readGenerationClaim(read: OptionReader<Key>, claim: unknown, preset: Preset): string | undefined {
  if (claim === undefined) return preset.generationClaim;
  if (claim === false) return undefined;
  if (typeof claim === 'string' && claim !== '') return claim;
  return read.refuse('generationClaim', 'the name of a claim, or false to switch the check off');
}

function readSource(
  read: OptionReader<Key>,
  source: IssuerOptions['generationSource'],
): GenerationSource | string | undefined {
  const fits = source === undefined || typeof source === 'string' || typeof source?.reader === 'function';
  return fits ? source : read.refuse('generationSource', 'a generation source, or its URL');
}
