/**
 * Counts what a request costs: calls of functions in src/, and bytes that are allocated beyond what Express with two
 * empty middlewares allocates. Prints JSON. With `--no-opt` both are the same on an idle and on a busy machine.
 */
import express from 'express';
import { authenticate, requireScope } from '../../../src/gate';
import { memoryGenerations } from '../../../src/gate/generation';
import type { Schedule } from '../../../src/gate/generation';
import { createTestIssuer } from '../../../src/testing';
import { functionsCalled } from './called';
import { pass } from './requests';

const REQUESTS = 500;
const ROUNDS = 5;
const MAX_ROUNDS = 40;
/** Rounds that differ by less have allocated the same. */
const SPREAD = 100;
const WARM_UP = 1_000;

type App = ReturnType<typeof express>;

/** No timer fires: what a gate does every few seconds would count, more often on a slow machine. */
const NEVER: Schedule = () => ({ cancel() {} });

/** The values of the Authorization header that are sent in turn. */
type Workload = readonly (string | undefined)[];

function gated(issuer: ReturnType<typeof createTestIssuer>): App {
  const app = express();
  const source = { generationSource: memoryGenerations({ schedule: NEVER }), schedule: NEVER };
  // The log is read once, before the first request.
  app.use('/v1', authenticate({ ...issuer.options, ...source, maxStalenessMs: 3_600_000 }));
  app.get('/v1/orders', requireScope('orders:read'), (_req, res) => void res.json({ id: 'order-1' }));
  return app;
}

function ungated(): App {
  const app = express();
  app.use('/v1', (_req, _res, next) => next());
  app.get(
    '/v1/orders',
    (_req, _res, next) => next(),
    (_req, res) => void res.json({ id: 'order-1' }),
  );
  return app;
}

async function run(app: App, workload: Workload, status: number): Promise<void> {
  for (const authorization of workload) {
    const got = await pass(app, authorization);
    if (got !== status) throw new Error(`expected ${status}, got ${got}`);
  }
}

/** Calls of functions in src/ per request. */
async function calls(app: App, workload: Workload, status: number): Promise<number> {
  const called = await functionsCalled(() => run(app, workload, status));
  return called.reduce((sum, { count }) => sum + count, 0) / workload.length;
}

/** Bytes allocated for one request. The young generation is large enough here that nothing is collected in between. */
async function bytes(app: App, workload: Workload, status: number): Promise<number> {
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  await run(app, workload, status);
  return (process.memoryUsage().heapUsed - before) / workload.length;
}

/**
 * Bytes beyond those of another app. What V8 does meanwhile only adds, on a busy machine in many rounds one after the other: the
 * least counts, once it was seen three times.
 */
async function bytesBeyond(bare: () => Promise<number>, own: () => Promise<number>): Promise<number> {
  const bares: number[] = [];
  const owns: number[] = [];
  const isSettled = (): boolean => owns.filter((one) => one < Math.min(...owns) + SPREAD).length >= 3;
  while (owns.length < ROUNDS || (!isSettled() && owns.length < MAX_ROUNDS)) {
    bares.push(await bare());
    owns.push(await own());
  }
  const middle = bares.sort((one, other) => one - other)[Math.floor(bares.length / 2)] as number;
  return Math.round(Math.min(...owns) - middle);
}

async function main(): Promise<void> {
  const issuer = createTestIssuer();
  const token = (scope = 'orders:read', expired = false): string => `Bearer ${issuer.token({ scope, expired })}`;
  const repeat = (value: string | undefined, times = REQUESTS): Workload => Array.from({ length: times }, () => value);
  const hot = token();
  const narrow = token('items:read');
  const expired = token('orders:read', true);
  const workloads: readonly (readonly [string, number, () => Workload])[] = [
    ['hot', 200, () => repeat(hot)],
    ['new', 200, () => Array.from({ length: REQUESTS }, () => token())],
    ['no token', 401, () => repeat(undefined)],
    ['expired', 401, () => repeat(expired)],
    ['wrong scope', 403, () => repeat(narrow)],
  ];
  const [app, bare] = [gated(issuer), ungated()];
  await run(bare, repeat(hot, WARM_UP), 200);
  for (const [, status, make] of workloads)
    for (let times = 0; times < WARM_UP / REQUESTS; times++) await run(app, make(), status);

  const work: Record<string, { calls: number; bytes: number }> = {};
  for (const [name, status, make] of workloads) {
    const beyond = await bytesBeyond(
      () => bytes(bare, repeat(hot), 200),
      () => bytes(app, make(), status),
    );
    work[name] = { calls: await calls(app, make(), status), bytes: beyond };
  }
  console.log(JSON.stringify(work));
}

void main();
