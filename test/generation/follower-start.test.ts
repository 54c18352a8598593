import { START } from './fixtures';
import { Scene, running, verdict } from './scene';

describe('a process that starts', () => {
  it('is ready when the log was read to its end and its mark has moved', async () => {
    const scene = new Scene();
    await scene.publish();
    await scene.change('pos');
    const api = scene.process();
    let settled = false;
    void api.verifier.settled()?.then(() => (settled = true));
    await scene.time.advance(900);
    expect([verdict(api, START), settled, api.verifier.status().source]).toEqual([
      'generations_unavailable',
      false,
      'starting',
    ]);
    await scene.time.advance(200);
    expect([verdict(api, START), settled, api.verifier.status().source]).toEqual(['accepted', true, 'fresh']);
    expect(api.verifier.settled()).toBeUndefined();
    expect(verdict(api, START - 1)).toBe('superseded');
  });

  it('accepts a mark that does not move after 5 s, if it is not older than maxSilenceMs', async () => {
    const scene = new Scene();
    await scene.publish();
    await scene.change('pos');
    scene.publisher?.close();
    await scene.time.advance(600_000);
    const api = scene.process();
    await scene.time.advance(4_900);
    expect(verdict(api, START)).toBe('generations_unavailable');
    await scene.time.advance(400);
    expect(verdict(api, START)).toBe('accepted');
    expect(verdict(api, START - 1)).toBe('superseded');
    await scene.time.advance(310_000);
    expect([verdict(api, START), api.verifier.status().source]).toEqual(['generations_unavailable', 'silent']);
  });

  it('refuses when the log was restored and its publisher is away', async () => {
    const scene = new Scene();
    await scene.publish();
    await scene.change('pos');
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
    expect(api.verifier.status()).toMatchObject({ source: 'silent', silentMs: 2_000_000 + 20_000 - 10_000 - 1 });
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
    expect(api.verifier.status()).toMatchObject({
      source: 'starting',
      lastError: expect.stringContaining('has no mark'),
    });
    scene.engine.state = { entries: [], mark: { epoch: 'x', unit: 1, completeMs: 0, keptMs: 90_000_000 } };
    await scene.time.advance(10_000);
    expect(api.verifier.status()).toMatchObject({
      source: 'starting',
      lastError: 'the publisher is writing the log anew',
    });
    scene.engine.wipe();
    scene.link.cut = false;
    await scene.time.advance(7_000);
    expect(verdict(api, START)).toBe('accepted');
    expect(verdict(api, START - 1)).toBe('superseded');
  });

  it('does not accept a dead token from a log that has just gone back', async () => {
    const scene = new Scene();
    await scene.publish();
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
});

describe('a process that waits for a mark that moves', () => {
  it('is not satisfied by one that went back', async () => {
    const scene = new Scene();
    await scene.publish();
    const before = scene.engine.state;
    await scene.time.advance(3_000);
    scene.publisher?.close();
    const api = scene.process();
    await scene.time.advance(1_000);
    scene.engine.state = before;
    await scene.time.advance(1_000);
    expect([verdict(api, START), api.verifier.status().source]).toEqual(['generations_unavailable', 'starting']);
  });
});
