import { START, HOUR, reasonOf, startFollower } from './fixtures';
import { Scene, memoryOn, publishing, running, verdict } from './scene';
import { generationsFromUrl } from '../../../src/gate/generation/from-url';
import { httpGenerations } from '../../../src/gate/generation/http/log';
import type { GenerationSource } from '../../../src/gate/generation/log';

describe('Follower without a source', () => {
  it('is ready immediately, always fresh, and has nothing to settle', async () => {
    const { follower } = startFollower();
    await follower.ready();
    expect(follower.settled()).toBeUndefined();
    expect(follower.status()).toEqual({ source: 'none', changes: 'tokens', floors: 0, reads: 0, failures: 0 });
    await follower.close();
  });

  it('admits any generation of a client that has no floor, and returns it', () => {
    expect(startFollower().follower.verify('pos', { generation: START - HOUR })).toBe(START - HOUR);
  });

  it.each([
    ['equal to', START, undefined],
    ['above', START + 1, undefined],
    ['below', START - 1, 'superseded'],
  ])('decides about a generation that is %s the floor', (_, generation, expected) => {
    const { follower } = startFollower();
    follower.verify('pos', { generation: START });
    expect(reasonOf(() => follower.recheck('pos', generation))).toBe(expected);
    expect(reasonOf(() => follower.verify('pos', { generation }))).toBe(expected);
  });

  it('learns from an admitted token, so that the one before it dies', () => {
    const { follower } = startFollower();
    follower.verify('pos', { generation: START - 2 });
    follower.verify('pos', { generation: START - 1 });
    expect(reasonOf(() => follower.verify('pos', { generation: START - 2 }))).toBe('superseded');
    expect(follower.status().floors).toBe(1);
  });

  it('keeps the floors of different clients apart', () => {
    const { follower } = startFollower();
    follower.verify('pos', { generation: START });
    expect(follower.verify('kiosk', { generation: 3 })).toBe(3);
  });

  it('learns nothing from a token that it refuses', () => {
    const { follower } = startFollower();
    expect(reasonOf(() => follower.verify('pos', { generation: START + HOUR }))).toBe('generation_invalid');
    expect(reasonOf(() => follower.verify('pos', {}))).toBe('generation_missing');
    expect(follower.status().floors).toBe(0);
  });

  it('learns nothing from issue times', () => {
    const rule = { claim: 'iat', decimalString: false, toleranceMs: 10_000 };
    const { follower } = startFollower({ rule });
    expect(follower.verify('pos', { iat: START / 1000 })).toBe(START);
    expect(follower.verify('pos', { iat: START / 1000 - 60 })).toBe(START - 60_000);
    expect(follower.status().floors).toBe(0);
  });

  it('forgets learned floors once their tokens have expired, so that memory grows with recent changes only', async () => {
    const { follower, time } = startFollower();
    for (let n = 0; n < 100; n++) follower.verify(`client-${n}`, { generation: START });
    // Two tables take turns: after one lifetime they are in the older one, after two they are gone.
    for (let hours = 1; hours <= 50; hours++) {
      await time.advance(HOUR);
      follower.verify('pos', { generation: START + hours * HOUR });
    }
    expect(follower.status().floors).toBe(1);
  });

  it('says only in the private detail which generation is below which floor', () => {
    const { follower } = startFollower();
    follower.verify('pos', { generation: START });
    expect(() => follower.recheck('pos', 4)).toThrow(
      expect.objectContaining({ privateDetail: `generation 4 is below the floor ${START}`, status: 401 }),
    );
  });
});

describe('a process that starts', () => {
  it('is ready when the log was read to its end and its mark has moved', async () => {
    const scene = await publishing('pos');
    const api = scene.process();
    let settled = false;
    void api.follower.settled()?.then(() => (settled = true));
    await scene.time.advance(900);
    const state = (): unknown[] => [verdict(api, START), settled, api.follower.status().source];
    expect(state()).toEqual(['generations_unavailable', false, 'starting']);
    await scene.time.advance(200);
    expect(state()).toEqual(['accepted', true, 'fresh']);
    expect(api.follower.settled()).toBeUndefined();
    expect(verdict(api, START - 1)).toBe('superseded');
  });

  it('accepts a mark that does not move after 5 s, if it is not older than maxSilenceMs', async () => {
    const scene = await publishing('pos');
    scene.publisher?.close();
    await scene.time.advance(600_000);
    const api = scene.process();
    await scene.time.advance(4_900);
    expect(verdict(api, START)).toBe('generations_unavailable');
    await scene.time.advance(400);
    expect(verdict(api, START)).toBe('accepted');
    expect(verdict(api, START - 1)).toBe('superseded');
    await scene.time.advance(310_000);
    expect([verdict(api, START), api.follower.status().source]).toEqual(['generations_unavailable', 'silent']);
  });

  it('refuses when the log was restored and its publisher is away', async () => {
    const scene = await publishing('pos');
    const old = scene.engine.state;
    await scene.time.advance(2_000_000);
    await scene.change('pos');
    scene.publisher?.close();
    scene.engine.state = old;
    const api = scene.process();
    for (let n = 0; n < 20; n++) {
      await scene.time.advance(1_000);
      expect(verdict(api, START)).toBe('generations_unavailable');
    }
    expect(api.follower.status()).toMatchObject({ source: 'silent', silentMs: 2_000_000 + 20_000 - 10_000 });
    await scene.publish();
    await scene.time.advance(1_500);
    expect(verdict(api, START)).toBe('superseded');
  });

  it('is not ready while a wiped log is written anew, and says so', async () => {
    const { scene } = await running();
    scene.link.cut = true;
    scene.engine.wipe();
    const api = scene.process();
    await scene.time.advance(10_000);
    expect(verdict(api, START)).toBe('generations_unavailable');
    const starting = (lastError: unknown) => ({ source: 'starting', lastError });
    expect(api.follower.status()).toMatchObject(starting(expect.stringContaining('has no mark')));
    scene.engine.state = { entries: [], mark: { epoch: 'x', unit: 1, completeMs: 0, keptMs: 90_000_000 } };
    await scene.time.advance(10_000);
    expect(api.follower.status()).toMatchObject(starting('the publisher is writing the log anew'));
    scene.engine.wipe();
    scene.link.cut = false;
    await scene.time.advance(7_000);
    expect(verdict(api, START)).toBe('accepted');
    expect(verdict(api, START - 1)).toBe('superseded');
  });

  it('does not accept a dead token from a log that has just gone back', async () => {
    const scene = await publishing();
    const before = scene.engine.state;
    await scene.time.advance(300);
    await scene.change('pos');
    scene.engine.state = before;
    const api = scene.process();
    for (let n = 0; n < 30; n++) {
      await scene.time.advance(100);
      expect(verdict(api, START)).not.toBe('accepted');
    }
    expect(verdict(api, START)).toBe('superseded');
  });

  it('is not ready with a mark that went back', async () => {
    const scene = await publishing();
    const before = scene.engine.state;
    await scene.time.advance(3_000);
    scene.publisher?.close();
    const api = scene.process();
    await scene.time.advance(1_000);
    scene.engine.state = before;
    await scene.time.advance(1_000);
    expect([verdict(api, START), api.follower.status().source]).toEqual(['generations_unavailable', 'starting']);
  });
});

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
      const { follower } = scene.process();
      for (let n = 0; n < 10; n++) {
        await scene.time.advance(1_000);
        mark.completeMs += 1_000;
        expect(reasonOf(() => follower.recheck('pos', START))).toBe('generations_unavailable');
      }
    });
  });

  it('the log is polled as it was configured', async () => {
    const { time } = new Scene();
    const source = memoryOn(time);
    await polluted({ pollMs: 9e15, readTimeoutMs: 0, ownsSource: true, random: () => -9e9 }, async () => {
      const { follower } = startFollower({ source }, time);
      await time.advance(20_000);
      expect(follower.status()).toMatchObject({ source: 'fresh', reads: 5, failures: 0 });
      await follower.close();
    });
    await source.append([['pos', START]]);
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
