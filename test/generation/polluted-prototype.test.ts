import { generationsFromUrl } from '../../src/generation/from-url';
import { httpGenerations } from '../../src/generation/http/log';
import type { GenerationSource } from '../../src/generation/log';
import { START, reasonOf, startVerifier } from './fixtures';
import { Scene, memoryOn } from './scene';

const prototype = Object.prototype as unknown as Record<string, unknown>;

/** Runs `work` while every object inherits these members. */
async function polluted<Value>(members: Record<string, unknown>, work: () => Value): Promise<Awaited<Value>> {
  Object.assign(prototype, members);
  try {
    return await work();
  } finally {
    for (const name of Object.keys(members)) delete prototype[name];
  }
}

const JSON_TYPE = 'application/json';

function served(body: unknown): GenerationSource {
  return httpGenerations({
    url: 'https://login.example',
    fetch: () => Promise.resolve(new Response(JSON.stringify(body), { headers: { 'content-type': JSON_TYPE } })),
  });
}

describe('with a polluted Object.prototype', () => {
  it('a mark that nobody wrote makes no process ready', async () => {
    const scene = new Scene();
    const mark = { epoch: 'x', unit: 1, completeMs: START, keptMs: 1e12 };
    await polluted({ mark, completeMs: START, keptMs: 1e12 }, async () => {
      const { verifier } = scene.process();
      for (let n = 0; n < 10; n++) {
        await scene.time.advance(1_000);
        mark.completeMs += 1_000;
        expect(reasonOf(() => verifier.recheck('pos', START))).toBe('generations_unavailable');
      }
    });
  });

  it('the log is polled as it was configured', async () => {
    const { time } = new Scene();
    const source = memoryOn(time);
    await polluted({ pollMs: 9e15, readTimeoutMs: 0, ownsSource: true, random: () => -9e9 }, async () => {
      const { verifier } = startVerifier({ source }, time);
      await time.advance(20_000);
      expect(verifier.status()).toMatchObject({ source: 'fresh', reads: 5, failures: 0 });
      await verifier.close();
    });
    expect(source.closed).toBe(false);
  });

  const change = { client_id: 'pos', generation: 5 };
  it.each<[string, Record<string, unknown>, unknown]>([
    ['position', { position: 'x' }, { end: true, changes: [] }],
    ['end', { end: true }, { position: 'x', changes: [change] }],
    ['changes', { changes: [] }, { position: 'x', end: true }],
    ['client_id', { client_id: 'pos' }, { position: 'x', end: true, changes: [{ generation: 5 }] }],
    ['generation', { generation: 5 }, { position: 'x', end: true, changes: [{ client_id: 'pos' }] }],
    ['epoch', { epoch: 'x' }, { position: 'x', end: true, changes: [], mark: { unit: 1, complete_ms: 1, kept_ms: 1 } }],
  ])('a response of the token server without "%s" stays incomplete', async (_, members, body) => {
    await polluted(members, () => expect(served(body).reader().next(0)).rejects.toThrow('https://login.example'));
  });

  it('http: stays refused', async () => {
    await polluted({ allowHttp: true }, () =>
      expect(() => generationsFromUrl('http://login.example')).toThrow('must be https:'),
    );
  });
});
