import type { Logger } from '../core/logger';
import { DEPENDENCIES } from '../core/dependencies';
import { option, readOptions } from '../core/options';
import type { TableOf } from '../core/options';
import type { GenerationSource } from '../generation/log';
import { isInMemory } from '../generation/memory';
import type { SecurityEventOptions } from '../token/security-event';
import type { GateOptions, IssuerOptions } from './options';
import { ISSUER_URL, KEY_SET, readStrings, urlCheck } from './read-options';
import { openKeys } from './issuer';
import { ALGORITHMS } from '../token/signature';

/** Options of `signalsReceiver()`. */
export interface SignalsReceiverOptions
  extends
    Pick<IssuerOptions, 'jwksUri' | 'keys'>,
    Pick<GateOptions, 'allowHttp' | 'logger' | 'clock' | 'schedule' | 'fetch' | 'random'> {
  /** Exactly the `iss` of the security event tokens. */
  readonly transmitter: string;
  /** Accepted `aud` of the security event tokens, one of several. */
  readonly audience: string | readonly string[];
  /**
   * Where the floors are published: a source with `append` that survives a restart. One in memory is for tests: it is
   * warned about, and refused in production.
   */
  readonly generationSource: GenerationSource;
  /** `iss` of the subjects, which is the issuer of the access tokens. Default: `transmitter`. */
  readonly issuer?: string | undefined;
  /** The gate's `generationClaim`: `'iat'` where it compares the issue time. Default: a generation in ms. */
  readonly generationClaim?: string | undefined;
}

/** Checked options of one receiver. */
export interface SignalsSettings extends SecurityEventOptions {
  readonly issuer: string;
  readonly publish: (clientId: string, generation: number) => Promise<void>;
  readonly logger: Logger;
  /** The floor that a change at a time stands for; both in ms. */
  readonly floorAt: (changedAtMs: number) => number;
}

const SIGNALS_OPTIONS = {
  transmitter: option.required(ISSUER_URL, 'the iss of the security event tokens'),
  audience: option.required(option('a non-empty string, or an array of them', readStrings)),
  generationSource: option.required(
    option('a generation source with append()', (given) => {
      const source = given as Required<GenerationSource> | null;
      return typeof source?.append === 'function' ? source : undefined;
    }),
  ),
  issuer: option.string(),
  generationClaim: option.string(),
  jwksUri: option.string(),
  keys: KEY_SET,
  allowHttp: option.boolean(false),
  ...DEPENDENCIES,
} satisfies TableOf<SignalsReceiverOptions>;

/**
 * Checks the options of `signalsReceiver()`.
 *
 * @throws TypeError
 */
export function readSignalsOptions(options: SignalsReceiverOptions): SignalsSettings {
  const settings = readOptions('signalsReceiver', options, SIGNALS_OPTIONS);
  const { transmitter, audience: audiences, generationSource, jwksUri, keys: given, clock, logger } = settings;
  if (isInMemory(generationSource)) refuseToForget(logger);
  if (given && jwksUri !== undefined) throw new TypeError('signalsReceiver(): give "keys" or "jwksUri", not both');
  const checkUrl = urlCheck('signalsReceiver', settings.allowHttp);
  if (!given) checkUrl(jwksUri ?? transmitter, jwksUri === undefined ? 'transmitter' : 'jwksUri');
  const keys = openKeys(
    {
      issuer: transmitter,
      authUrl: transmitter,
      jwksUri,
      keys: given,
      checkUrl,
      keysMaxAgeMs: 600_000,
      keysStaleMs: 3_600_000,
    },
    settings,
    { factory: 'signalsReceiver' },
  );
  return {
    transmitter,
    audiences,
    issuer: settings.issuer ?? transmitter,
    keys,
    algorithms: ALGORITHMS,
    clockToleranceMs: 10_000,
    clock,
    logger,
    async publish(clientId, generation) {
      await generationSource.append([[clientId, generation]]);
    },
    floorAt: settings.generationClaim === 'iat' ? endOfSecond : Math.floor,
  };
}

/**
 * Times of events are whole seconds, and so are issue times: the floor is the end of the second, so that a token that
 * was issued in the same second before the change dies with the rest.
 */
function endOfSecond(changedAtMs: number): number {
  return Math.floor(changedAtMs / 1000) * 1000 + 999;
}

/** A 202 says that the event need not be sent again, but a source in memory forgets it with the process. */
function refuseToForget(logger: Logger): void {
  if (process.env['NODE_ENV'] === 'production') {
    throw new TypeError(
      'signalsReceiver(): option "generationSource" is in memory and forgets every event at a restart; ' +
        'in production give redisGenerations() or postgresGenerations()',
    );
  }
  logger.warn({}, 'signalsReceiver(): the generation source is in memory: a restart forgets every event it confirmed');
}
