import type { Logger } from '../../../src/gate/core/logger';
import { Follower } from '../../../src/gate/generation/follower';
import type { FollowerOptions } from '../../../src/gate/generation/follow-log';
import { AuthError } from '../../../src/gate/core/errors';
import { fakeTime } from '../../support/fake-time';
import type { FakeTime } from '../../support/fake-time';

export const START = 1_800_000_000_000;
export const HOUR = 3_600_000;

/** A logger that keeps its lines as `level: message`. */
export interface KeptLog extends Logger {
  readonly lines: string[];
  readonly fields: object[];
}

export function keptLog(): KeptLog {
  const lines: string[] = [];
  const fields: object[] = [];
  const keep = (level: string) => (given: object, message: string) => {
    lines.push(`${level}: ${message}`);
    fields.push(given);
  };
  return { lines, fields, info: keep('info'), warn: keep('warn'), error: keep('error') };
}

export interface StartedFollower {
  readonly time: FakeTime;
  readonly log: KeptLog;
  readonly follower: Follower;
}

/** A follower on fake time: a minute of staleness, a poll every 5 s, no jitter. */
export function startFollower(options: Partial<FollowerOptions> = {}, time = fakeTime(START)): StartedFollower {
  const log = keptLog();
  const follower = new Follower({
    issuer: 'https://login.example',
    rule: { claim: 'generation', decimalString: false, toleranceMs: 10_000 },
    maxTokenAgeMs: 24 * HOUR,
    skewMs: 10_000,
    maxStalenessMs: 60_000,
    maxSilenceMs: 900_000,
    onStale: 'reject',
    source: undefined,
    ownsSource: false,
    pollMs: 5_000,
    readTimeoutMs: 5_000,
    clock: time.clock,
    schedule: time.schedule,
    logger: log,
    random: () => 0,
    ...options,
  });
  return { time, log, follower };
}

/** The reason for which `work` refuses, or `undefined` when it passes. */
export function reasonOf(work: () => unknown): string | undefined {
  try {
    work();
  } catch (error) {
    if (error instanceof AuthError) return error.reason;
    throw error;
  }
  return undefined;
}
