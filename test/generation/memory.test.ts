import { memoryGenerations } from '../../src/generation/memory';
import type { Floor } from '../../src/generation/source';
import { amount } from '../support/amount';
import { fakeTime, settle } from '../support/fake-time';
import { START, reasonOf, startVerifier } from './fixtures';

function newSource() {
  const time = fakeTime(START);
  const source = memoryGenerations({ clock: time.clock });
  const read = async (sinceMs: number): Promise<Floor[]> => [...(await source.read(sinceMs)).floors];
  return { time, source, read };
}

describe('memoryGenerations', () => {
  it('returns everything for 0, and its own clock', async () => {
    const { source } = newSource();
    await source.publish('pos', 7);
    await source.publish('__proto__', START);
    const { floors, nowMs } = await source.read(0);
    expect([...floors]).toEqual([
      ['pos', 7],
      ['__proto__', START],
    ]);
    expect(nowMs).toBe(START);
  });

  it('returns what moved at or after a time, by the time of the change and not by the generation', async () => {
    const { source, time, read } = newSource();
    await source.publish('pos', START + 99_999);
    await time.advance(10);
    await source.publish('kiosk', 3);
    expect(await read(START)).toHaveLength(2);
    expect(await read(START + 1)).toEqual([['kiosk', 3]]);
    expect(await read(START + 10)).toEqual([['kiosk', 3]]);
    expect(await read(START + 11)).toEqual([]);
  });

  it('changes nothing for a number that is not higher', async () => {
    const { source, time, read } = newSource();
    const wake = jest.fn();
    await source.publish('pos', 7);
    await source.watch(wake);
    await time.advance(10);
    await source.publish('pos', 7);
    await source.publish('pos', 6);
    expect(await read(0)).toEqual([['pos', 7]]);
    expect(await read(START + 1)).toEqual([]);
    expect(wake).not.toHaveBeenCalled();
  });

  it('never steps back: a change after the clock was set back is not older than an earlier read', async () => {
    const { source, time, read } = newSource();
    const { nowMs } = await source.read(0);
    time.step(-3_600_000);
    await source.publish('pos', 7);
    expect(await read(nowMs)).toEqual([['pos', 7]]);
    expect((await source.read(0)).nowMs).toBe(nowMs);
  });

  it('wakes every watcher until it stops', async () => {
    const { source } = newSource();
    const wake = jest.fn();
    const stop = await source.watch(wake);
    await source.watch(wake);
    await source.publish('pos', 1);
    expect(wake).toHaveBeenCalledTimes(2);
    stop();
    await source.publish('pos', 2);
    expect(wake).toHaveBeenCalledTimes(3);
    await source.close();
    await source.publish('pos', 3);
    expect(wake).toHaveBeenCalledTimes(3);
  });

  it.each([
    ['', 5],
    [undefined, 5],
    [7, 5],
    ['pos', -1],
    ['pos', 1.5],
    ['pos', 2 ** 53],
    ['pos', '5'],
    ['pos', NaN],
    ['pos', undefined],
  ])('refuses to publish %p with %p', async (clientId, generation) => {
    const { source, read } = newSource();
    await expect(source.publish(clientId as string, generation as number)).rejects.toThrow(TypeError);
    expect(await read(0)).toEqual([]);
  });

  it('refuses an option that it does not know', () => {
    expect(() => memoryGenerations({ clocks: Date.now } as object)).toThrow(/did you mean "clock"/);
    expect(() => memoryGenerations({ clock: 7 } as never)).toThrow(
      new TypeError('memoryGenerations(): option "clock" must be a function, got 7'),
    );
  });

  it('reaches a verifier immediately', async () => {
    const { source, time } = newSource();
    const { verifier } = startVerifier({ source }, time);
    await verifier.ready();
    for (let n = 1; n <= 5; n++) {
      await source.publish('pos', START + n);
      await settle();
      expect(reasonOf(() => verifier.recheck('pos', START + n - 1))).toBe('superseded');
    }
    await verifier.close();
  });

  it('brings thousands of changes of one second to a verifier completely', async () => {
    const half = amount(1_000, 5_000);
    const { source, time } = newSource();
    const { verifier } = startVerifier({ source }, time);
    await verifier.ready();
    for (let n = 0; n < 2 * half; n++) {
      await source.publish(`client-${n % half}`, START + n);
      if (n % 100 === 99) await time.advance(10);
    }
    await time.advance(1);
    expect(verifier.status().floors).toBe(half);
    for (let n = half; n < 2 * half; n++) {
      expect(reasonOf(() => verifier.recheck(`client-${n - half}`, START + n - 1))).toBe('superseded');
    }
    await verifier.close();
  });
});
