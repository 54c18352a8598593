import { Pool } from 'pg';
import type { PoolConfig } from 'pg';
import { postgresGenerations } from '../../../src/generation';
import type { GenerationSource, PublishingSource, PostgresGenerationsOptions } from '../../../src/generation';
import { AuthError } from '../../../src/core/auth-error';
import { systemClock, systemSchedule } from '../../../src/core/clock';
import { generationVerifier } from '../../../src/generation/verifier';
import type { GenerationVerifier, GenerationVerifierOptions } from '../../../src/generation/verifier';
import { recordingLogger } from '../../support/log';
import type { RecordingLogger } from '../../support/log';

/** A source with the pool that it uses. */
export interface OpenSource {
  readonly source: PublishingSource;
  readonly pool: Pool;
  readonly log: RecordingLogger;
  close(): Promise<void>;
}

/** Opens a source with a pool of its own, as a process would. */
export function openSource(
  config: PoolConfig,
  options: Partial<Omit<PostgresGenerationsOptions, 'pool' | 'logger'>> = {},
): OpenSource {
  const log = recordingLogger();
  const pool = new Pool({ max: 4, connectionTimeoutMillis: 500, ...config });
  const source = postgresGenerations({ pool, createTable: true, sentinel: false, logger: log, ...options });
  return {
    source,
    pool,
    log,
    async close() {
      await source.close();
      await pool.end();
    },
  };
}

/** Connections for the test itself; a server that stops while they end is not a failure. */
export function quietPool(connectionString: string): Pool {
  const pool = new Pool({ connectionString });
  pool.on('error', () => undefined);
  return pool;
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
