import { EventEmitter } from 'node:events';
import { postgresGenerations } from '../../../src/stores/postgres/log';
import type { GenerationLog } from '../../../src/gate/generation/log';
import type { PostgresGenerationsOptions } from '../../../src/stores/postgres/log';
import type { PostgresClient, PostgresPool, PostgresResult } from '../../../src/stores/postgres/connection';
import { fakeTime } from '../../support/fake-time';
import type { FakeTime } from '../../support/fake-time';

type Rows = PostgresResult['rows'] | Error | Promise<never>;

/** Rows of the statements that contain a text. */
export type Script = Record<string, Rows | ((values: unknown[] | undefined) => Rows)>;

/** One connection of the fake pool. */
export class FakeClient extends EventEmitter implements PostgresClient {
  readonly asked: string[] = [];
  /** How it was given back: `true` destroys it. */
  readonly released: boolean[] = [];

  constructor(readonly script: Script) {
    super();
  }

  async query(text: string, values?: unknown[]): Promise<PostgresResult> {
    const statement = text.replace(/\s+/g, ' ').trim();
    this.asked.push(statement);
    const key = Object.keys(this.script).find((part) => statement.includes(part));
    const scripted = key === undefined ? [] : this.script[key];
    const rows = await (typeof scripted === 'function' ? scripted(values) : scripted);
    if (rows instanceof Error) throw rows;
    return { rows: rows ?? [] };
  }

  release(destroy = false): void {
    this.released.push(destroy);
  }
}

/** A pool whose server responds by script. */
export class FakePool extends EventEmitter implements PostgresPool {
  readonly clients: FakeClient[] = [];
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

const EMPTY = { isStandby: false, isFound: true, clientIds: null, generations: null, last: null, mark: null };

/** The row of a read. */
export function found(given: object = {}): { readonly read: string }[] {
  return [{ read: JSON.stringify({ ...EMPTY, ...given }) }];
}

/** A primary with an empty log. */
export const HEALTHY: Script = {
  json_build_object: found(),
  pg_trigger: [{ missing: 'false', appends: 'true', encoding: 'UTF8' }],
};

/** A source on a fake pool and fake time. */
export interface FakeSource {
  readonly source: GenerationLog;
  readonly pool: FakePool;
  readonly time: FakeTime;
}

export function fakeSource(script: Script = {}, options: Partial<PostgresGenerationsOptions> = {}): FakeSource {
  const time = fakeTime();
  const pool = new FakePool({ ...script, ...HEALTHY, ...script });
  const { clock, schedule } = time;
  return { source: postgresGenerations({ pool, clock, schedule, ...options }), pool, time };
}
