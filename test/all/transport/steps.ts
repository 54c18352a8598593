import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { COMPILED } from '../support/compiled';

const SCENE = join(__dirname, 'scene.cjs');

/** What one step of the scene reports. */
type Step = Readonly<Record<string, unknown>>;

/** Runs steps of `scene.cjs` in a process of their own. */
export function runSteps(node: string, ...steps: readonly string[]): readonly Step[] {
  const env = { ...process.env, NODE_USE_ENV_PROXY: undefined };
  const argv = [SCENE, join(COMPILED, 'src/gate'), ...steps];
  const printed = execFileSync(node, argv, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
    timeout: 60_000,
  });
  return printed
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Step);
}

/** Steps, and what is new in their reports. A gate takes over a dispatcher, and a `fetch`, at its next request. */
export const STEPS = {
  closed: { clients: [], undici: false, jwksRsa: false },
  gate: { status: 200, ofVerify: 200, clients: ['http'], undici: false, jwksRsa: true },
  log: { status: 200, ofVerify: 200, clients: ['http'], undici: false },
  withHeaders: { status: 200, ofVerify: 200, clients: ['http'], undici: false },
  opaque: { reason: 'inactive', clients: ['http'], undici: false },
  twice: { before: ['http'], clients: ['fetch'], undici: true },
  fetch: { fetched: 200, clients: ['fetch'] },
} as const;
