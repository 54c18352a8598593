import { authenticate } from '../../src/index';
import { createTestIssuer } from '../../src/testing/index';
import { ask } from '../ask';
import { round, table } from '../stats';
import { megabytes } from './suite';
import type { Suite } from './suite';

const SAMPLE_EVERY = 10_000;
const CLIENTS = 1_000;

/** Memory under tokens of which none comes twice. */
export const uniqueTokens: Suite = {
  about: 'unique tokens of 1,000 clients through one gate: the heap in the second tenth and in the last',
  defaults: { tokens: 1_000_000 },
  async run({ tokens = 0 }) {
    const issuer = createTestIssuer();
    const gate = authenticate({ ...issuer.options, unguarded: 'allow', logger: { info() {}, warn() {}, error() {} } });
    const samples: { readonly at: number; readonly heap: number }[] = [];
    const startedMs = performance.now();
    for (let index = 1; index <= tokens; index++) {
      const status = await ask(gate, issuer.token({ clientId: `client-${index % CLIENTS}`, scope: 'orders:read' }));
      if (status !== 200) throw new Error(`token ${index} got ${status}`);
      if (index % Math.min(SAMPLE_EVERY, tokens / 100) === 0) samples.push({ at: index, heap: heapUsed() });
    }
    const seconds = (performance.now() - startedMs) / 1000;
    const between = (from: number, to: number): number => {
      const heaps = samples.filter(({ at }) => at > from * tokens && at <= to * tokens).map(({ heap }) => heap);
      return heaps.reduce((sum, heap) => sum + heap, 0) / heaps.length;
    };
    const [second, last] = [between(0.1, 0.2), between(0.9, 1)];
    await gate.close();
    return table(
      [
        'unique tokens',
        'heap in the second tenth, MB',
        'heap in the last tenth, MB',
        'change',
        'tokens/s, signing included',
      ],
      [
        [
          tokens,
          megabytes(second),
          megabytes(last),
          `${round((last / second - 1) * 100)}%`,
          Math.round(tokens / seconds),
        ],
      ],
    );
  },
};

function heapUsed(): number {
  if (!global.gc) throw new Error('run it with --expose-gc, as npm run bench:hardening does');
  global.gc();
  return process.memoryUsage().heapUsed;
}
