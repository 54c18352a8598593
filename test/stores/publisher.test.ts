import type { LogReader } from '../../src/gate/generation/log';
import { startPublisher } from '../../src/stores/publisher';
import { memoryGenerations } from '../../src/gate/generation/memory';
import { START } from '../gate/generation/fixtures';
import { Engine, Scene, publishing } from '../gate/generation/scene';

describe('startPublisher', () => {
  it('appends its record under a new epoch, and then calls the log complete', async () => {
    const scene = new Scene();
    scene.record.set('pos', START - 5).set('kiosk', 41);
    const marks: number[] = [];
    scene.engine.beforeUnit = () => marks.push(scene.engine.state.mark?.completeMs ?? -1);
    const publisher = await scene.publish();
    await publisher.ready();
    expect(scene.engine.state.entries).toEqual([
      ['pos', START - 5],
      ['kiosk', 41],
    ]);
    // No mark, then one that does not call it complete.
    expect(marks).toEqual([-1, 0]);
    expect(scene.engine.state.mark).toMatchObject({ unit: 2, completeMs: START, keptMs: 90_000_000 });
    expect(publisher.status()).toEqual({ state: 'current', pending: 0, silentMs: 0 });
  });

  it('appends what is lost when the log goes back while it is read', async () => {
    const scene = new Scene();
    const mark = { epoch: 'one', unit: 1, completeMs: START - 9, keptMs: 90_000_000 };
    const older = { entries: [['pos', START - 9]] as const, mark };
    scene.record.set('pos', START - 9).set('kiosk', START - 5);
    scene.engine.state = { entries: [...scene.record], mark: { ...mark, unit: 2 } };
    const { source } = scene.link;
    // Reads the log in two batches: it goes back between them, and the reader starts again.
    const inBatches = (): LogReader => {
      const reader = source.reader();
      let calls = 0;
      return {
        async next(waitMs) {
          const batch = await reader.next(waitMs);
          if (++calls > 1) return batch;
          scene.engine.state = older;
          return { changes: batch.changes, end: false };
        },
        close: () => reader.close(),
      };
    };
    let readers = 0;
    const reader = (): LogReader => (++readers === 1 ? inBatches() : source.reader());
    const publisher = await scene.publish({ source: { ...source, reader } });
    await scene.time.advance(5_000);
    expect(publisher.status()).toMatchObject({ state: 'current', pending: 0 });
    expect(new Map(scene.engine.state.entries)).toEqual(scene.record);
  });

  it('writes a mark every second, which never repeats a time', async () => {
    const scene = await publishing();
    await scene.time.advance(3_000);
    expect(scene.engine.state.mark).toMatchObject({ unit: 5, completeMs: START + 3_000 });
    scene.time.step(-60_000);
    await scene.time.advance(2_000);
    expect(scene.engine.state.mark).toMatchObject({ unit: 7, completeMs: START + 3_002 });
  });

  it('appends a change at once, and says that it is published', async () => {
    const scene = await publishing();
    expect(await scene.change('pos')).toBe(true);
    expect(scene.engine.state.entries).toEqual([['pos', START]]);
  });

  it('says that a change is pending while the log cannot be reached, and appends it with the next mark', async () => {
    const scene = new Scene();
    const publisher = await scene.publish();
    scene.link.cut = true;
    expect(await scene.change('pos')).toBe(false);
    expect(publisher.status()).toMatchObject({ state: 'failing', pending: 1, lastError: 'cut' });
    await scene.time.advance(10_000);
    expect(publisher.status().silentMs).toBe(10_000);
    scene.link.cut = false;
    await scene.time.advance(1_000);
    expect(scene.engine.state.entries).toEqual([['pos', START]]);
    expect(publisher.status()).toMatchObject({ state: 'current', pending: 0 });
    expect(scene.log.lines).toEqual([
      'warn: generations could not be published, it is retried',
      'info: generations can be published again',
    ]);
  });

  it('begins an epoch after a unit without a response: it may have been read, and lost since', async () => {
    const scene = new Scene();
    const publisher = await scene.publish();
    const { epoch } = scene.engine.state.mark!;
    scene.link.deaf = true;
    await scene.change('pos');
    await scene.time.advance(5_000);
    scene.link.deaf = false;
    await scene.time.advance(2_000);
    expect(scene.engine.state.mark!.epoch).not.toBe(epoch);
    expect(scene.engine.state.mark!.completeMs).toBeGreaterThan(START);
    expect(new Map(scene.engine.state.entries)).toEqual(scene.record);
    expect(publisher.status()).toMatchObject({ state: 'current', pending: 0 });
  });

  it('never calls the log complete for a time that has not come: two units in one millisecond have the same time', async () => {
    const scene = await publishing();
    const unitBefore = scene.engine.state.mark!.unit;
    await scene.change('pos');
    await scene.change('pos');
    expect(scene.engine.state.mark!.unit).toBe(unitBefore + 2);
    expect(scene.engine.state.mark!.completeMs).toBe(scene.time.clock());
  });

  it('has no two units of an epoch that expect the same mark', async () => {
    const scene = new Scene();
    const expected: string[] = [];
    const { source } = scene.link;
    const watched: typeof source = {
      ...source,
      append: (changes, unit) => {
        if (unit?.expected?.epoch === unit?.mark.epoch) expected.push(`${unit?.mark.epoch} ${unit?.mark.unit}`);
        return source.append!(changes, unit);
      },
    };
    await scene.publish({ source: watched });
    for (let n = 0; n < 20; n++) {
      scene.link.deaf = n % 3 === 1;
      scene.link.cut = n % 5 === 2;
      await scene.change('pos');
      await scene.time.advance(700);
    }
    expect(expected.length).toBeGreaterThan(10);
    expect(new Set(expected).size).toBe(expected.length);
  });

  it('publishes every change of a client that is pending: floors merge, in any order', async () => {
    const scene = new Scene();
    const publisher = await scene.publish();
    scene.link.cut = true;
    const generations = [START - 1, START, START - 2];
    const published = generations.map((generation) => publisher.publish('pos', generation));
    await scene.time.advance(2_000);
    scene.link.cut = false;
    await scene.time.advance(1_000);
    expect(await Promise.all(published)).toEqual([false, false, false]);
    expect(scene.engine.state.entries).toEqual(generations.map((generation) => ['pos', generation]));
  });

  it.each([
    ['is wiped', (scene: Scene) => scene.engine.wipe()],
    ['is another one', (scene: Scene) => (scene.engine = new Engine())],
  ])('appends everything again under a new epoch when the log %s', async (_, fault) => {
    const scene = await publishing();
    const { epoch } = scene.engine.state.mark!;
    await scene.change('pos');
    await scene.change('kiosk');
    fault(scene);
    await scene.time.advance(2_000);
    expect(scene.engine.state.entries).toEqual([...scene.record]);
    expect(scene.engine.state.mark!.epoch).not.toBe(epoch);
    expect(scene.engine.state.mark!.completeMs).toBeGreaterThan(START);
    expect(scene.log.lines.filter((line) => line.includes('written anew'))).toHaveLength(1);
  });

  it('appends all of its record when the log went back, and compares with nothing', async () => {
    const scene = await publishing('pos');
    const before = scene.engine.state;
    await scene.change('kiosk');
    scene.engine.state = before;
    await scene.time.advance(2_000);
    expect(scene.engine.state.entries).toEqual([...before.entries, ...scene.record]);
  });

  it.each([1, 2, 3, 4])('calls no log complete that is wiped before unit %d of an epoch', async (which) => {
    const scene = new Scene();
    for (let n = 0; n < 1_200; n++) scene.record.set(`client-${n}`, START - n);
    scene.engine.beforeUnit = () => {
      if (scene.engine.units === which) scene.engine.wipe();
    };
    await scene.publish();
    for (let n = 0; n < 20; n++) {
      const { mark, entries } = scene.engine.state;
      if (mark && mark.completeMs > 0) expect(new Map(entries)).toEqual(scene.record);
      await scene.time.advance(250);
    }
    expect(scene.engine.state.mark?.completeMs).toBeGreaterThan(0);
  });

  it('begins again when an epoch could not be written to its end', async () => {
    const scene = new Scene();
    for (let n = 0; n < 1_200; n++) scene.record.set(`client-${n}`, START - n);
    scene.engine.beforeUnit = () => {
      scene.link.deaf = scene.engine.units === 3;
    };
    await scene.publish();
    expect(scene.engine.state.mark?.completeMs).toBe(0);
    await scene.time.advance(5_000);
    expect(new Map(scene.engine.state.entries)).toEqual(scene.record);
    expect(scene.engine.state.mark?.completeMs).toBeGreaterThan(0);
  });

  it('leaves out a change that is none, with a line in the log, and publishes the others', async () => {
    const scene = new Scene();
    scene.record
      .set('', START)
      .set('*', START)
      .set('micro', START * 1000)
      .set('pos', START);
    await scene.publish();
    expect(scene.engine.state.entries).toEqual([['pos', START]]);
    expect(scene.log.lines).toEqual(Array(3).fill('error: a change cannot be published, it is left out'));
  });

  it('keeps a change of the future until its time has come: the clock was set back after the change before it', async () => {
    const scene = new Scene();
    const publisher = await scene.publish();
    await scene.change('pos');
    await scene.change('pos');
    scene.time.step(-600_000);
    expect(await scene.change('pos')).toBe(false);
    expect(scene.record.get('pos')).toBe(START + 2);
    const { completeMs } = scene.engine.state.mark!;
    await scene.time.advance(500_000);
    expect(publisher.status().pending).toBe(1);
    expect(scene.engine.state.mark).toMatchObject({ completeMs });
    await scene.time.advance(100_000);
    expect(publisher.status().pending).toBe(0);
    expect(scene.engine.state.entries.at(-1)).toEqual(['pos', START + 2]);
    expect(scene.engine.state.mark!.completeMs).toBeGreaterThan(completeMs);
    expect(scene.log.lines).toEqual(['warn: changes of the future are pending until their time has come']);
  });

  it('refuses to publish a number in microseconds, and what is no change', async () => {
    const scene = new Scene();
    const publisher = await scene.publish();
    await expect(publisher.publish('pos', START * 1000)).rejects.toThrow('is it in microseconds?');
    await expect(publisher.publish('', START)).rejects.toThrow(TypeError);
    await expect(publisher.publish('*', START)).rejects.toThrow('"*" is not a client id');
    expect(publisher.status().pending).toBe(0);
  });

  it('takes over a log from another publisher', async () => {
    const scene = await publishing('pos');
    scene.publisher?.close();
    const { epoch } = scene.engine.state.mark!;
    await scene.publish();
    expect(scene.engine.state.mark!.epoch).not.toBe(epoch);
    expect(scene.engine.state.entries).toEqual([...scene.record, ...scene.record]);
    await scene.time.advance(5_000);
    expect(scene.log.lines).toEqual([]);
  });

  const source = memoryGenerations();
  const unappendable = { mark: true, reader: () => source.reader() };
  it.each<[string, object, string]>([
    ['no changes', { source }, 'option "changes" must be a function'],
    ['an option of another name', { source, changes: () => [], sources: 1 }, 'unknown option "sources"'],
    ['a source without append()', { source: unappendable, changes: () => [] }, 'a generation source with append()'],
  ])('refuses %s', (_what, options, message) => {
    expect(() => startPublisher(options as never)).toThrow(message);
  });

  it.each([0, 1, 2, 3])('ends before its next unit when it is closed within unit %d', async (which) => {
    const scene = new Scene();
    for (let n = 0; n < 1_200; n++) scene.record.set(`client-${n}`, START - n);
    scene.engine.beforeUnit = () => {
      if (scene.engine.units === which) publisher.close();
    };
    const publishing = scene.publish();
    const publisher = scene.publisher!;
    // Before its record is read.
    if (which === 0) publisher.close();
    await publishing;
    const pending = publisher.publish('pos', START);
    await scene.time.advance(10_000);
    expect(scene.engine.units).toBe(which);
    expect(scene.engine.state.mark?.completeMs ?? 0).toBe(0);
    expect(await pending).toBe(false);
    expect(scene.time.pending).toBe(0);
    expect(scene.log.lines).toEqual([]);
  });

  it('calls a log complete no more after close(): its record may have moved on in another process', async () => {
    const scene = await publishing('pos');
    const { units } = scene.engine;
    // The unit under way finds that the log was wiped: an epoch would begin.
    scene.engine.beforeUnit = () => {
      scene.engine.wipe();
      scene.publisher?.close();
    };
    await scene.time.advance(10_000);
    expect(scene.engine.units).toBe(units + 1);
    expect(scene.engine.state.mark).toBeUndefined();
  });

  it('is quiet after close()', async () => {
    const scene = new Scene();
    const publisher = await scene.publish();
    publisher.close();
    const { units } = scene.engine;
    await scene.time.advance(10_000);
    expect(scene.engine.units).toBe(units);
  });
});
