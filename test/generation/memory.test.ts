import { memoryGenerations } from '../../src/generation/memory';
import { generationSourceCases } from '../../src/testing/source-cases/source-cases';
import { amount } from '../support/amount';
import { fakeTime } from '../support/fake-time';
import { HOUR, START } from './fixtures';

function create() {
  const source = memoryGenerations();
  return Promise.resolve({
    source,
    another: () => Promise.resolve({ ...source, close: undefined as never }),
    close: () => source.close(),
  });
}

describe('memoryGenerations', () => {
  for (const { name, run } of generationSourceCases({ create, changes: amount(2_500, 100_000) })) it(name, run);
});

describe('the log in memory', () => {
  it('trims changes that no token can need any more, and readers go on', async () => {
    const time = fakeTime(START);
    const log = memoryGenerations({ maxTokenAgeSeconds: 3_600, clock: time.clock, schedule: time.schedule });
    const reader = log.reader();
    const old = Array.from({ length: 2_000 }, (_, index) => [`old-${index}`, START] as const);
    await log.append(old);
    expect((await reader.next(0)).changes).toEqual(old);
    await time.advance(2 * HOUR + 1);
    await log.append([['new', START]]);
    expect((await reader.next(0)).changes).toEqual([['new', START]]);
    expect((await log.reader().next(0)).changes).toEqual([['new', START]]);
  });

  it('is read from the oldest change by who has a position of another log', async () => {
    const [log, other] = [memoryGenerations(), memoryGenerations()];
    await other.append([
      ['a', 1],
      ['b', 2],
    ]);
    await log.append([['pos', 1]]);
    const { position } = other.read(undefined);
    for (const after of [position, 'x', '', '-1', `${position}9`])
      expect(log.read(after).changes).toEqual([['pos', 1]]);
  });

  it('refuses wrong options', () => {
    expect(() => memoryGenerations({ maxTokenAge: 5 } as never)).toThrow(
      'memoryGenerations(): unknown option "maxTokenAge"',
    );
  });
});
