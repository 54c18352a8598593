import { EventEmitter } from 'node:events';
import { postgresGenerations } from '../../../src/generation/postgres/source';
import type { PostgresGenerationsOptions } from '../../../src/generation/postgres/source';
import type { PostgresClient, PostgresPool, PostgresResult } from '../../../src/generation/postgres/sessions';
import type { PublishingSource } from '../../../src/generation/source';
import { fakeTime } from '../../support/fake-time';
import type { FakeTime } from '../../support/fake-time';
import { recordingLogger } from '../../support/log';
import type { RecordingLogger } from '../../support/log';
import { START } from '../fixtures';

type Result = PostgresResult['rows'] | Error | Promise<never>;

/** Result of statements that begin like this. */
export type Script = Record<string, Result | ((values: unknown[] | undefined) => Result)>;

/** One connection of the fake pool. */
export class FakeClient extends EventEmitter implements PostgresClient {
  readonly asked: string[] = [];
  readonly values: (unknown[] | undefined)[] = [];
  /** How it was given back: `true` destroys it. */
  readonly released: boolean[] = [];

  constructor(readonly script: Script) {
    super();
  }

  async query(text: string, values?: unknown[]): Promise<PostgresResult> {
    const statement = text.replace(/\s+/g, ' ').trim();
    this.asked.push(statement);
    this.values.push(values);
    const key = Object.keys(this.script).find((beginning) => statement.startsWith(beginning));
    const scripted = key === undefined ? [] : this.script[key];
    const result = await (typeof scripted === 'function' ? scripted(values) : scripted);
    if (result instanceof Error) throw result;
    return { rows: result ?? [] };
  }

  release(destroy = false): void {
    this.released.push(destroy);
  }
}

/** A pool whose server responds by script. */
export class FakePool extends EventEmitter implements PostgresPool {
  readonly clients: FakeClient[] = [];
  readonly options = { max: 4, connectionTimeoutMillis: 5_000 };
  connecting: () => Promise<void> = () => Promise.resolve();

  constructor(readonly script: Script) {
    super();
  }

  async connect(): Promise<PostgresClient> {
    await this.connecting();
    const client = new FakeClient(this.script);
    this.clients.push(client);
    return client;
  }
}

/** What a healthy primary says about a read. */
export const HEAD = { horizon: '750', now_ms: String(START), standby: 'false', history: 'a server', stamped: 'true' };

export const HEALTHY: Script = {
  'SELECT pg_snapshot_xmin': [HEAD],
  'SELECT FROM pg_listening_channels': [{}],
  'SELECT FROM pg_class': [{}],
  FETCH: [{ client_id: 'pos', generation: '1800000000001' }],
};

/** A source on a fake pool and fake time. */
export interface FakeSource {
  readonly source: PublishingSource;
  readonly pool: FakePool;
  readonly time: FakeTime;
  readonly log: RecordingLogger;
}

export function fakeSource(script: Script = {}, options: Partial<PostgresGenerationsOptions> = {}): FakeSource {
  const time = fakeTime(START);
  const log = recordingLogger();
  const pool = new FakePool({ ...HEALTHY, ...script });
  const source = postgresGenerations({ pool, schedule: time.schedule, logger: log, ...options });
  return { source, pool, time, log };
}
