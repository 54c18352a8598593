import { generationsFromUrl } from '../../src/generation/from-url';
import { httpGenerations } from '../../src/generation/http/source';
import type { GenerationSource } from '../../src/generation/source';
import { ScriptedSource, START, reasonOf, startVerifier } from './fixtures';

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

function feed(body: unknown, type: string): GenerationSource {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return httpGenerations({
    url: 'https://login.example',
    fetch: () => Promise.resolve(new Response(text, { headers: { 'content-type': type } })),
  });
}

describe('with a polluted Object.prototype', () => {
  it('a source that has to be read does not become a live one', async () => {
    const source = new ScriptedSource();
    source.fails();
    await polluted({ floorOf: () => undefined }, async () => {
      const { verifier } = startVerifier({ source });
      await verifier.settled();
      expect(reasonOf(() => verifier.recheck('pos', START))).toBe('generations_unavailable');
    });
  });

  it('reads ask from the time of the last response', async () => {
    const source = new ScriptedSource();
    await polluted({ resumeMs: 9e15, overlapMs: -9e15, pollMs: 9e15, readTimeoutMs: 0, ownsSource: true }, async () => {
      const { verifier, time } = startVerifier({ source });
      await verifier.ready();
      await time.advance(5_000);
      await verifier.close();
    });
    expect(source.asked).toEqual([0, START - 60_000]);
  });

  it.each<[string, Record<string, unknown>, unknown, string]>([
    ['now', { now: START }, { floors: [] }, JSON_TYPE],
    ['floors', { floors: [] }, { now: START }, JSON_TYPE],
    ['client_id', { client_id: 'pos' }, { now: START, floors: [{ generation: 5 }] }, JSON_TYPE],
    ['generation', { generation: 5 }, { now: START, floors: [{ client_id: 'pos' }] }, JSON_TYPE],
    ['count', { count: 0 }, `{"now":${START}}\n`, 'application/x-ndjson'],
  ])('a response of the feed without "%s" stays incomplete', async (_, members, body, type) => {
    await polluted(members, () => expect(feed(body, type).read(0)).rejects.toThrow('GET https://login.example'));
  });

  it('http: stays refused', async () => {
    await polluted({ allowHttp: true }, () =>
      expect(() => generationsFromUrl('http://login.example')).toThrow('must be https:'),
    );
  });
});
