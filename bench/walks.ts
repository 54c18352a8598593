/**
 * `npm run bench:walks`: how many files and functions of the gate one request goes through, and making a gate: what a reader
 * opens to follow it. By V8's precise coverage, warm and without observers. `--list` names the functions.
 */
import express from 'express';
import { authenticate, requireScope } from '../src/gate';
import { createTestIssuer } from '../src/testing';
import { functionsCalled } from '../test/all/work/called';
import { pass } from '../test/all/work/requests';

interface Walk {
  readonly name: string;
  readonly maxFiles: number;
  readonly maxFunctions: number;
  readonly walk: () => unknown;
}

const WARM_UP = 50;
/** The shortest counts: a busy machine can make one go through a wait that others do not need. */
const COUNTED = 5;
/** A timer that fires during a walk would be counted with it. */
const NEVER = () => ({ cancel: () => undefined });

async function main(): Promise<void> {
  const issuer = createTestIssuer();
  const gate = authenticate({ ...issuer.options, exposeReasons: false, schedule: NEVER });
  const app = express();
  app.use('/v1', gate);
  app.get('/v1/orders', requireScope('orders:read'), (_req, res) => void res.json({ id: 'order-1' }));
  const bearer = (expired = false): string => `Bearer ${issuer.token({ scope: 'orders:read', expired })}`;
  const [known, fresh, expired] = [bearer(), tokens(() => bearer()), tokens(() => bearer(true))];
  const { issuer: name, audience } = issuer.options;
  const fetch = () => new Promise<never>(() => undefined);

  const walks: readonly Walk[] = [
    { name: 'known token', maxFiles: 15, maxFunctions: 36, walk: () => pass(app, known) },
    { name: 'new token', maxFiles: 26, maxFunctions: 98, walk: () => pass(app, fresh.pop()) },
    { name: 'expired token', maxFiles: 22, maxFunctions: 84, walk: () => pass(app, expired.pop()) },
    { name: 'no token', maxFiles: 9, maxFunctions: 24, walk: () => pass(app, undefined) },
    {
      name: 'authenticate(options)',
      maxFiles: 30,
      maxFunctions: 115,
      walk: () => authenticate({ issuer: name, audience, fetch, logger: false }),
    },
  ];
  console.log('walk                    files   at most   functions   at most');
  for (const { name: title, maxFiles, maxFunctions, walk } of walks) {
    for (let times = 0; times < WARM_UP; times++) await walk();
    let called = await functionsCalled(walk);
    for (let times = 1; times < COUNTED; times++) {
      const again = await functionsCalled(walk);
      if (again.length < called.length) called = again;
    }
    const files = new Set(called.map(({ url }) => url));
    const columns = [files.size, maxFiles, called.length, maxFunctions].map((count) => String(count).padStart(8));
    console.log(title.padEnd(20) + columns.join('  '));
    if (process.argv.includes('--list')) print(called);
  }
}

/** One for each time that a walk is made. */
function tokens(make: () => string): string[] {
  return Array.from({ length: WARM_UP + COUNTED }, make);
}

function print(called: Awaited<ReturnType<typeof functionsCalled>>): void {
  for (const file of new Set(called.map(({ url }) => url))) {
    const names = called.filter(({ url }) => url === file).map(({ name }) => name || '(anonymous)');
    console.log(`  ${file.replace(/^.*\/src\//, '')}: ${names.join(', ')}`);
  }
}

void main().then(() => process.exit());
