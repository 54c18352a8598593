import { settle } from '../../support/fake-time';
import { START } from '../fixtures';
import { fakeSource } from './fake';

type Floors = [clientIds: string[], generations: number[]];

/** A source whose server writes the next batch when it is told to. */
function writing() {
  const batches: Floors[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const fake = fakeSource({
    'INSERT INTO': (values) => {
      batches.push(values as Floors);
      return new Promise<never>((resolve, reject) =>
        ends.push((error) => (error ? reject(error) : resolve([] as never))),
      );
    },
  });
  async function end(error?: Error): Promise<void> {
    ends.shift()?.(error);
    await settle();
  }
  return { ...fake, batches, end };
}

function failing(code: string): Error {
  return Object.assign(new Error('no'), { code });
}

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `client-${n}`);

describe('publishes at the same time', () => {
  it('become one statement per 1,000, one after the other', async () => {
    const { source, batches, end } = writing();
    let published = 0;
    for (const id of ids(2_500)) void source.publish(id, START).then(() => published++);
    await settle();
    expect(batches.map(([clientIds]) => clientIds.length)).toEqual([1_000]);
    await end();
    expect([published, batches[1]?.[0].length]).toEqual([1_000, 1_000]);
    await end();
    await end();
    expect([published, batches.map(([clientIds]) => clientIds.length)]).toEqual([2_500, [1_000, 1_000, 500]]);
    expect(batches.flatMap(([clientIds]) => clientIds)).toEqual(ids(2_500));
  });

  it('that come while a statement runs wait for the next one, which holds no client twice', async () => {
    const { source, batches, end } = writing();
    const done: string[] = [];
    const publish = (id: string, generation: number): void =>
      void source.publish(id, generation).then(() => done.push(`${id} ${generation - START}`));
    publish('pos', START);
    await settle();
    expect(batches).toEqual([[['pos'], [START]]]);
    publish('pos', START + 2);
    publish('kiosk', START);
    publish('pos', START + 9);
    publish('pos', START + 1);
    await end();
    expect(done).toEqual(['pos 0']);
    expect(batches[1]).toEqual([
      ['pos', 'kiosk'],
      [START + 9, START],
    ]);
    await end();
    expect(done).toEqual(['pos 0', 'pos 2', 'pos 9', 'pos 1', 'kiosk 0']);
  });

  it('all reject when their statement fails, and the next ones are written', async () => {
    const { source, pool, batches, end } = writing();
    const outcomes = Promise.allSettled(ids(3).map((id) => source.publish(id, START)));
    await settle();
    const later = source.publish('pos', START);
    await end(failing('57P01'));
    expect((await outcomes).map((outcome) => outcome.status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(pool.clients[0]?.released).toEqual([true]);
    await end();
    await later;
    expect(batches.map(([clientIds]) => clientIds)).toEqual([ids(3), ['pos']]);
  });

  it('do not fail because of one floor that the server refuses', async () => {
    const refused = 'Ünïcödé';
    const { source } = fakeSource({
      'INSERT INTO': (values) => ((values as Floors)[0].includes(refused) ? failing('22P05') : []),
    });
    const given = [...ids(5), refused, ...ids(9).slice(5)];
    const outcomes = await Promise.allSettled(given.map((id) => source.publish(id, START)));
    expect(outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [given[n]] : []))).toEqual([refused]);
  });

  it('with wrong arguments reject alone, before the batch', async () => {
    const { source, batches, end } = writing();
    const outcomes = Promise.allSettled([
      source.publish('pos', START),
      source.publish('', START),
      source.publish('kiosk', -1),
    ]);
    await settle();
    await end();
    expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(batches).toEqual([[['pos'], [START]]]);
  });
});
