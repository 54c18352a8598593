import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import type { Express } from 'express';
import { authenticate, requireScope } from '../../../src/gate';
import type { Gate } from '../../../src/gate';
import { createAuthServer } from '../../../src/cli/auth-server';
import type { AuthServer } from '../../../src/cli/auth-server';
import type { GenerationSource } from '../../../src/gate/generation';
import { httpGenerations, memoryGenerations } from '../../../src/gate/generation';
import type { Jwks } from '../../../src/gate/token/keys/key-set';
import { putKeyInto } from '../../cli/data-dir';
import { fakeTime, settle } from '../../support/fake-time';
import { publishTo } from '../chaos/publish-to';
import type { FakeTime } from '../../support/fake-time';
import { dispatch, fetchFrom } from './dispatch';
import type { Got, Sent } from './dispatch';
import { LIFETIME_MS, SCOPES } from './model';

const ISSUER = 'https://login.test';
const AUDIENCE = 'https://api.test';
const ADMIN_TOKEN = 'admin-admin-admin';
const STEP_MS = 1_000;
const SILENT = { info() {}, warn() {}, error() {} };

/** Faults that a test injects. */
export interface Faults {
  readonly source?: (source: GenerationSource) => GenerationSource;
  /** Whether the gates check generations at all. */
  readonly generation?: false;
  /** Called with the folder of the token server while it is stopped. */
  readonly whileStopped?: (dataDir: string) => void;
}

/**
 * The APIs: one follows a source that pushes changes, one polls the token server every five seconds, one learns from
 * tokens only.
 */
export type ApiName = 'following' | 'polling' | 'learning';

/** A token server and its APIs. */
export interface System {
  readonly time: FakeTime;
  /** Moves the clock of the token server against that of the APIs. */
  setAhead(ms: number): void;
  /** Sends a request to the token server, as an operator. */
  ask(request: Sent): Promise<Got>;
  /** Calls a route that requires one scope. */
  call(api: ApiName, scope: string, token: string): Promise<string>;
  /** Starts the token server again on its folder; `emptySource`: the store of the floors has lost everything. */
  restartServer(options: { readonly emptySource: boolean }): Promise<void>;
  restartApis(): Promise<void>;
  /** Advances time and runs what falls due. */
  pass(ms: number): Promise<void>;
  /** Waits until pending work has settled. */
  rest(): Promise<void>;
  close(): Promise<void>;
}

export async function startSystem(faults: Faults = {}): Promise<System> {
  const time = fakeTime();
  const dataDir = mkdtempSync(join(tmpdir(), 'tillgate-property-'));
  putKeyInto(dataDir);
  let aheadMs = 0;
  // Timers may fall due within a millisecond; clocks show whole ones.
  const clock = (): number => Math.floor(time.clock());
  let source = newSource();
  let publishing: { close(): void } | undefined;
  let server = await startServer();
  let apis = startApis(await keysOf(server));

  async function rest(): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await settle();
    await time.advance(0);
    await settle();
  }

  function newSource(): GenerationSource {
    const memory = memoryGenerations({ clock, schedule: time.schedule });
    return faults.source?.(memory) ?? memory;
  }

  async function startServer(): Promise<AuthServer> {
    const auth = await createAuthServer({
      issuer: ISSUER,
      audience: AUDIENCE,
      dataDir,
      scopes: SCOPES,
      adminToken: ADMIN_TOKEN,
      tokenLifetimeSeconds: LIFETIME_MS / 1000,
      rateLimit: false,
      logger: SILENT,
      clock: () => clock() + aheadMs,
      schedule: time.schedule,
    });
    const { schedule } = time;
    const options = { clock: () => clock() + aheadMs, schedule, logger: SILENT };
    publishing = await publishTo(source, auth.generations, options);
    return auth;
  }

  function startApis(keys: Jwks): Readonly<Record<ApiName, Api>> {
    const { schedule } = time;
    const start = (generations?: GenerationSource): Api => {
      const source =
        faults.generation === false ? { generationClaim: false as const } : { generationSource: generations };
      const options = { issuer: ISSUER, audience: AUDIENCE, keys, logger: SILENT, clock, schedule };
      return apiOf(authenticate({ ...options, ...source }));
    };
    const log = httpGenerations({
      url: `${ISSUER}/generations`,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      fetch: fetchFrom(() => server.handler),
      schedule,
    });
    // Time stands still between two steps, and a mark that does not move makes no API ready.
    const polled = { ...(faults.source?.(log) ?? log), mark: false };
    return { following: start(source), polling: start(polled), learning: start() };
  }

  async function closeApis(): Promise<void> {
    await Promise.all(Object.values(apis).map(({ gate }) => gate.close()));
  }

  async function restartApis(): Promise<void> {
    await closeApis();
    apis = startApis(await keysOf(server));
    await Promise.all(Object.values(apis).map(({ gate }) => gate.ready()));
  }

  return {
    time,
    setAhead: (ms) => void (aheadMs = ms),
    ask: (request) => dispatch(server.handler, { bearer: ADMIN_TOKEN, ...request }),
    async call(api, scope, bearer) {
      const { status, body } = await dispatch(apis[api].app, { method: 'GET', path: `/${scope}`, bearer });
      return status === 200 ? '200' : `${status} ${String(body['code'])}`;
    },
    async restartServer({ emptySource }) {
      publishing?.close();
      await server.close();
      faults.whileStopped?.(dataDir);
      if (emptySource) source = newSource();
      server = await startServer();
      if (emptySource) await restartApis();
    },
    restartApis,
    rest,
    async pass(ms) {
      // In steps: a pending response must get a turn before its deadline.
      for (let left = ms; left > 0; left -= STEP_MS) {
        await time.advance(Math.min(left, STEP_MS));
        await rest();
      }
    },
    async close() {
      await closeApis();
      publishing?.close();
      await server.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

interface Api {
  readonly gate: Gate;
  readonly app: Express;
}

function apiOf(gate: Gate): Api {
  const app = express();
  app.use(gate);
  for (const scope of SCOPES)
    app.get(`/${scope.replace(':', '\\:')}`, requireScope(scope), (_req, res) => res.json({}));
  return { gate, app };
}

async function keysOf({ handler }: AuthServer): Promise<Jwks> {
  const { body } = await dispatch(handler, { method: 'GET', path: '/.well-known/openid-configuration/jwks' });
  return body as unknown as Jwks;
}
