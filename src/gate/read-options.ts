import { systemClock, systemSchedule } from '../core/clock';
import type { Clock, Schedule } from '../core/clock';
import type { Logger } from '../core/logger';
import { hasUserInfo, isSecureUrl } from '../core/urls';
import { ownMembers } from '../core/objects';
import { describe, isList, readOptions } from '../core/options';
import type { OptionReader } from '../core/options';
import type { Confirmation } from '../token/claims';
import type { Fetch } from '../token/keys/fetch-json';
import { readMtls } from '../token/possession/client-certificate';
import type { MtlsSettings } from '../token/possession/client-certificate';
import { readDpop } from '../token/possession/dpop-options';
import type { DpopSettings } from '../token/possession/dpop-options';
import type { AuthenticateOptions, GateOptions, IssuerOptions } from './options';
import { ISSUER_KEYS, readIssuer } from './read-issuer-options';
import type { IssuerSettings } from './read-issuer-options';
import { readScopeList } from './scope-requirement';

/** The dependencies of a gate, with their defaults. */
export interface GateDependencies {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly fetch: Fetch;
  readonly random: () => number;
}

/** Checked options of one gate. */
export interface GateSettings extends GateDependencies {
  readonly issuers: readonly IssuerSettings[];
  readonly unguarded: 'allow' | 'warn' | 'refuse';
  readonly optional: boolean;
  readonly refusals: 'respond' | 'next';
  readonly realm: string;
  readonly resource: string | undefined;
  /** `undefined`: the challenge of a request without a token names none. */
  readonly challengeScopes: readonly string[] | undefined;
  readonly problemTypes: string | undefined;
  readonly exposeReasons: boolean;
  readonly allowHttp: boolean;
  readonly verifiedTokens: number;
  readonly onDecision: GateOptions['onDecision'];
  /** `undefined`: tokens bound to a key are refused. */
  readonly dpop: DpopSettings | undefined;
  /** `undefined`: tokens bound to a certificate are refused. */
  readonly mtls: MtlsSettings | undefined;
  /** `undefined`: what `dpop` and `mtls` require. */
  readonly binding: 'any' | undefined;
}

/** Names of the options that are dependencies. */
export const DEPENDENCY_KEYS = ['logger', 'clock', 'schedule', 'fetch', 'random'] as const;

/** Names of the options of a gate, without those of its issuers. */
export const GATE_KEYS = [
  'unguarded',
  'optional',
  'refusals',
  'realm',
  'resource',
  'challengeScopes',
  'problemTypes',
  'exposeReasons',
  'dpop',
  'mtls',
  'binding',
  'allowHttp',
  'verifiedTokens',
  'onDecision',
  ...DEPENDENCY_KEYS,
] as const satisfies readonly (keyof GateOptions)[];

/**
 * Checks the options of `authenticate()`.
 *
 * @throws TypeError naming the option, what was got and what is expected.
 */
export function readGateOptions(given: AuthenticateOptions): GateSettings {
  const read = readOptions('authenticate', given, ['issuers', ...GATE_KEYS, ...ISSUER_KEYS]);
  const options = ownMembers(given);
  const allowHttp = read.boolean('allowHttp', false);
  const checkUrl = urlCheck('authenticate', allowHttp);
  const optional = read.boolean('optional', false);
  const resource = read.string('resource');
  if (resource !== undefined) urlCheck('authenticate', true)(resource, 'resource');
  // RFC 9728 section 1.2.
  if (resource?.includes('#')) read.refuse('resource', 'a URL without a fragment');
  const { challengeScopes } = options;
  const problemTypes = read.string('problemTypes');
  if (problemTypes !== undefined && !isHttpUrl(problemTypes)) read.refuse('problemTypes', 'an http(s) URL');
  const dpop = options.dpop === undefined ? undefined : readDpop('authenticate', options.dpop, resource);
  const mtls = options.mtls === undefined ? undefined : readMtls('authenticate', options.mtls);
  const confirmations: Confirmation[] = [...(dpop ? ['jkt' as const] : []), ...(mtls ? ['x5t#S256' as const] : [])];
  return {
    issuers: readIssuers(read, options, { checkUrl, confirmations }),
    dpop,
    mtls,
    binding: readBinding(read, dpop, mtls),
    unguarded: read.oneOf('unguarded', ['allow', 'warn', 'refuse'], optional ? 'allow' : 'warn'),
    optional,
    refusals: read.oneOf('refusals', ['respond', 'next'], 'respond'),
    realm: read.string('realm') ?? 'api',
    resource,
    challengeScopes: challengeScopes && readScopeList(challengeScopes, 'authenticate', 'option "challengeScopes": '),
    problemTypes,
    allowHttp,
    exposeReasons: read.boolean('exposeReasons', process.env['NODE_ENV'] !== 'production'),
    verifiedTokens: read.number('verifiedTokens', 5_000, { unit: 'tokens', min: 0, integer: true }),
    onDecision: read.has('onDecision') ? read.callable('onDecision', options.onDecision) : undefined,
    ...readDependencies(read),
  };
}

/**
 * Reads the dependencies, with their defaults.
 *
 * @throws TypeError
 */
export function readDependencies(read: OptionReader<(typeof DEPENDENCY_KEYS)[number]>): GateDependencies {
  return {
    logger: read.logger('logger'),
    clock: read.callable('clock', systemClock),
    schedule: read.callable('schedule', systemSchedule),
    fetch: read.callable<Fetch>('fetch', (url, init) => fetch(url, init)),
    random: read.callable('random', Math.random),
  };
}

function readBinding(
  read: OptionReader<'binding'>,
  dpop: DpopSettings | undefined,
  mtls: MtlsSettings | undefined,
): 'any' | undefined {
  if (!read.has('binding')) return undefined;
  const binding = read.oneOf('binding', ['any'], 'any');
  if (dpop && mtls && !dpop.required && !mtls.required) return binding;
  throw new TypeError(
    'authenticate(): option "binding" needs "dpop" and "mtls", neither of them with "required": one of both is enough',
  );
}

function readIssuers(
  read: OptionReader<'issuers'>,
  options: AuthenticateOptions,
  ofGate: Pick<IssuerSettings, 'checkUrl' | 'confirmations'>,
): readonly IssuerSettings[] {
  if (!('issuers' in options)) return [readIssuer(options, GATE_KEYS, ofGate)];
  const stray = ISSUER_KEYS.find((key) => (options as Partial<IssuerOptions>)[key] !== undefined);
  if (stray) throw new TypeError(`authenticate(): option "${stray}" goes into each entry of "issuers", not next to it`);
  if (!isList(options.issuers) || options.issuers.length === 0) {
    read.refuse('issuers', 'an array of at least one issuer');
  }
  const issuers = options.issuers.map((issuer) => readIssuer(issuer, [], ofGate));
  if (new Set(issuers.map(({ issuer }) => issuer)).size < issuers.length) {
    throw new TypeError('authenticate(): option "issuers" names one issuer twice');
  }
  // An opaque token does not say who issued it, and the issuers must not get each other's tokens.
  if (issuers.filter(({ introspection }) => introspection).length > 1) {
    throw new TypeError('authenticate(): option "introspection" is accepted for one of the "issuers" only');
  }
  return issuers;
}

/**
 * Makes the check of URLs that keys and floors come from: TLS, or loopback (RFC 8725 section 3.10, RFC 8414
 * section 2). It throws a TypeError.
 */
export function urlCheck(factory: string, allowHttp: boolean): (url: string, what: string) => void {
  return function checkUrl(url, what) {
    const refuse = (expected: string): never => {
      throw new TypeError(`${factory}(): option "${what}" must be ${expected}, got ${describe(url)}`);
    };
    if (!isHttpUrl(url)) refuse('an absolute https: URL');
    // Only a generation source has credentials in its URL.
    if (what !== 'generationSource' && hasUserInfo(url)) refuse('a URL without user name and password');
    if (!allowHttp && !isSecureUrl(url)) {
      refuse('https: (http: is accepted on loopback only, or with allowHttp: true)');
    }
  };
}

export function isHttpUrl(url: string): boolean {
  return /^https?:\/\//.test(url) && URL.canParse(url);
}
