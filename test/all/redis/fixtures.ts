import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { AuthError } from '../../../src/core/auth-error';
import { systemClock, systemSchedule } from '../../../src/core/clock';
import { redisGenerations } from '../../../src/generation';
import type { GenerationSource, PublishingSource, RedisClient, RedisGenerationsOptions } from '../../../src/generation';
import { generationVerifier } from '../../../src/generation/verifier';
import type { GenerationVerifier, GenerationVerifierOptions } from '../../../src/generation/verifier';
import { recordingLogger } from '../../support/log';
import type { RecordingLogger } from '../../support/log';

/** A client and how it ends. */
export interface Connected {
  readonly client: RedisClient;
  readonly end: () => void;
}

/** Connects by one of the two packages; `name` is what the server knows the connection by. */
export type Connect = (url: string, name: string) => Promise<Connected>;

export const byIoredis =
  (protocol: 2 | 3 = 3): Connect =>
  (url, connectionName) => {
    const client = new Redis(url, { connectionName, protocol });
    return Promise.resolve({ client, end: () => client.disconnect() });
  };

export const byNodeRedis =
  (RESP: 2 | 3 = 3): Connect =>
  async (url, name) => {
    const client = createClient({ url, name, RESP });
    client.on('error', () => undefined);
    await client.connect();
    return { client, end: () => client.destroy() };
  };

/** A source with the client that it uses, as one process has them. */
export interface OpenSource {
  readonly source: PublishingSource;
  readonly log: RecordingLogger;
  close(): Promise<void>;
}

export async function openSource(
  connect: Connect,
  url: string,
  options: Partial<Omit<RedisGenerationsOptions, 'client' | 'logger'>> = {},
): Promise<OpenSource> {
  const log = recordingLogger();
  const { client, end } = await connect(url, options.key ?? 'test');
  const source = redisGenerations({ client, sentinel: false, logger: log, ...options });
  return {
    source,
    log,
    async close() {
      await source.close();
      end();
    },
  };
}

/** A verifier on real time that polls so rarely that only hints explain what it knows, unless a test says otherwise. */
export function startVerifier(
  source: GenerationSource,
  options: Partial<GenerationVerifierOptions> = {},
): GenerationVerifier {
  return generationVerifier({
    issuer: 'https://login.example',
    rule: { claim: 'generation', decimalString: false, toleranceMs: 60_000 },
    learn: true,
    source,
    maxTokenAgeMs: 86_400_000,
    skewMs: 10_000,
    maxStalenessMs: 120_000,
    onStale: 'reject',
    pollMs: 60_000,
    clock: systemClock,
    schedule: systemSchedule,
    logger: recordingLogger(),
    ...options,
  });
}

/** What a verifier says about a token of this generation: its reason to refuse, or `admitted`. */
export function verdict(verifier: GenerationVerifier, clientId: string, generation: number): string {
  try {
    verifier.recheck(clientId, generation);
    return 'admitted';
  } catch (error) {
    if (error instanceof AuthError) return error.reason;
    throw error;
  }
}

/** Presents a superseded token every other ms from now on; `expectHeld` says how it went. */
export function presentOldToken(
  verifier: GenerationVerifier,
  clientId: string,
  generation: number,
): { readonly expectHeld: () => void } {
  const verdicts = new Map<string, number>();
  const timer = setInterval(() => {
    const reason = verdict(verifier, clientId, generation);
    verdicts.set(reason, (verdicts.get(reason) ?? 0) + 1);
  }, 2);
  return {
    expectHeld() {
      clearInterval(timer);
      expect([...verdicts.keys()]).toEqual(['superseded']);
    },
  };
}
