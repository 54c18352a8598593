import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import type { Express } from 'express';
import { authenticate, requireScope } from '../../src';
import type { Gate } from '../../src';
import { createAuthServer } from '../../src/auth-server';
import type { AuthServer } from '../../src/auth-server';
import type { GenerationSource } from '../../src/generation';
import { memoryGenerations } from '../../src/generation';
import type { Jwks } from '../../src/token/static-keys';
import { fakeTime, settle } from '../support/fake-time';
import type { FakeTime } from '../support/fake-time';
import { dispatch } from './dispatch';
import type { Got, Sent } from './dispatch';
import { LIFETIME_MS, SCOPES } from './model';

const ISSUER = 'http://login.test';
const AUDIENCE = 'http://api.test';
const ADMIN_TOKEN = 'admin';
const SILENT = { info() {}, warn() {}, error() {} };

/** Mistakes that a test plants. */
export interface Faults {
  readonly source?: (source: GenerationSource) => GenerationSource;
  /** Whether the gates look at generations at all. */
  readonly generation?: false;
  /** Called with the folder of the token server while it is stopped. */
  readonly whileStopped?: (dataDir: string) => void;
}

/** A token server, and two APIs: one follows a source of generations, one learns from tokens alone. */
export interface System {
  readonly time: FakeTime;
  /** Moves the clock of the token server against that of the APIs. */
  setAhead(ms: number): void;
  /** Asks the token server, as an operator. */
  ask(request: Sent): Promise<Got>;
  /** Calls a route that asks for one scope. */
  call(gate: 'following' | 'learning', scope: string, token: string): Promise<string>;
  /** Starts the token server again on its folder; `emptySource`: the store of the floors has lost everything. */
  restartServer(options: { readonly emptySource: boolean }): Promise<void>;
  restartGates(): Promise<void>;
  /** Lets what is under way come to rest. */
  rest(): Promise<void>;
  close(): Promise<void>;
}

export async function startSystem(faults: Faults = {}): Promise<System> {
  const time = fakeTime();
  const dataDir = mkdtempSync(join(tmpdir(), 'tillgate-property-'));
  let aheadMs = 0;
  let source = newSource();
  let server = await startServer();
  let gates = startGates(await keysOf(server));

  function newSource(): GenerationSource {
    const memory = memoryGenerations({ clock: time.clock });
    return faults.source?.(memory) ?? memory;
  }

  function startServer(): Promise<AuthServer> {
    return createAuthServer({
      issuer: ISSUER,
      audience: AUDIENCE,
      dataDir,
      scopes: SCOPES,
      generations: source,
      adminToken: ADMIN_TOKEN,
      tokenLifetimeSeconds: LIFETIME_MS / 1000,
      signingAlgorithm: 'ES256',
      rateLimit: false,
      logger: SILENT,
      clock: () => time.clock() + aheadMs,
      schedule: time.schedule,
    });
  }

  function startGates(keys: Jwks): { readonly following: Api; readonly learning: Api } {
    const options = {
      issuer: ISSUER,
      audience: AUDIENCE,
      keys,
      logger: SILENT,
      clock: time.clock,
      schedule: time.schedule,
    };
    const generation = faults.generation === false ? { generation: false as const } : {};
    return {
      following: apiOf(
        authenticate({ ...options, ...generation, ...(faults.generation !== false && { generations: source }) }),
      ),
      learning: apiOf(authenticate({ ...options, ...generation })),
    };
  }

  async function closeGates(): Promise<void> {
    await Promise.all([gates.following.gate.close(), gates.learning.gate.close()]);
  }

  async function restartGates(): Promise<void> {
    await closeGates();
    gates = startGates(await keysOf(server));
    await gates.following.gate.ready();
  }

  return {
    time,
    setAhead: (ms) => void (aheadMs = ms),
    ask: (request) => dispatch(server.handler, { bearer: ADMIN_TOKEN, ...request }),
    async call(gate, scope, bearer) {
      const { status, body } = await dispatch(gates[gate].app, { method: 'GET', path: `/${scope}`, bearer });
      return status === 200 ? '200' : `${status} ${String(body['code'])}`;
    },
    async restartServer({ emptySource }) {
      await server.close();
      faults.whileStopped?.(dataDir);
      if (emptySource) source = newSource();
      server = await startServer();
      if (emptySource) await restartGates();
    },
    restartGates,
    async rest() {
      await settle();
      await time.advance(0);
      await settle();
    },
    async close() {
      await closeGates();
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
