/**
 * `npm run bench:held`: what 100,000 held connections cost: memory each, time for one look at all of them, and time from a
 * change to the end of one.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { memoryGenerations } from '../src/gate/generation/index';
import { createGate } from '../src/gate/express/authenticate';
import { createTestIssuer } from '../src/testing';

const COUNT = 100_000;

async function main(): Promise<void> {
  // The timers of a gate keep no process alive.
  const alive = setInterval(() => undefined, 1_000);
  const issuer = createTestIssuer();
  const generations = memoryGenerations();
  const gate = createGate({ ...issuer.options, generationSource: generations }, { verifiedTokens: 0 });
  await gate.ready();
  const accepted = [];
  for (let index = 0; index < COUNT; index++) {
    const authorization = `Bearer ${issuer.token({ clientId: `till-${index}` })}`;
    accepted.push(await gate.verify({ method: 'GET', url: '/', headers: { authorization } } as never));
  }
  const before = memory();
  let ended: (() => void) | undefined;
  const end = (): void => ended?.();
  for (const auth of accepted) if (auth) gate.hold(auth, end);
  await pause(100);
  console.log(`memory of one held connection: ${Math.round((memory() - before) / COUNT)} bytes`);

  const used = process.cpuUsage();
  await pause(5_000);
  const { user, system } = process.cpuUsage(used);
  console.log(`looking at all ${COUNT} once a second: ${((user + system) / 5_000 / 10).toFixed(1)}% of a processor`);

  const began = performance.now();
  await new Promise<void>((resolve) => {
    ended = resolve;
    void generations.append([['till-7', Date.now() + 5_000]]);
  });
  console.log(`from the change of one client to its end: ${(performance.now() - began).toFixed(1)} ms`);

  await gate.close();
  clearInterval(alive);
}

function memory(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

void main();
