import { setImmediate as turn } from 'node:timers/promises';
import { callNow, callUnwaited, called } from '../../../src/gate/core/callbacks';
import { consoleLogger, errorLabel, errorText, guardLogger } from '../../../src/gate/core/logger';
import { dependencies, readOptions } from '../../../src/gate/core/options';
import { recordingLogger } from '../../support/log';

/** What code of others can throw: also what cannot be read. */
const UNREADABLE = new Proxy(Object.create(null) as object, {
  get() {
    throw new Error('unreadable');
  },
});

/** What ends a process. */
const uncaught: unknown[] = [];
const note = (error: unknown): void => void uncaught.push(error);
beforeAll(() => void process.on('unhandledRejection', note));
afterAll(() => void process.off('unhandledRejection', note));
afterEach(async () => {
  await turn();
  expect(uncaught).toEqual([]);
});

const throwing = (): never => {
  throw new Error('broken');
};

/** The ways in which a function fails. */
const FAILURES: readonly (readonly [string, () => unknown])[] = [
  ['throws', throwing],
  ['rejects', () => Promise.reject(new Error('broken'))],
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as some do
  ['rejects with what cannot be read', () => Promise.reject(UNREADABLE)],
  ['returns a thenable that throws', () => ({ then: throwing })],
  ['returns what cannot be read', () => UNREADABLE],
];

describe('code of others', () => {
  it.each(FAILURES)('that %s ends no process: callUnwaited() hands the failure over once', async (_what, fail) => {
    const failures: unknown[] = [];
    callUnwaited(fail, (error) => void failures.push(error));
    await turn();
    expect(failures).toHaveLength(1);
    callUnwaited(fail, () => {
      throw new Error('so does the report');
    });
  });

  it.each(FAILURES.filter(([what]) => what !== 'returns what cannot be read'))(
    'that %s rejects through called()',
    async (_what, fail) => {
      await expect(called(fail)).rejects.toBeDefined();
      expect(await called(() => 1)).toBe(1);
    },
  );

  it('that returns a promise by mistake leaves no rejection behind callNow()', async () => {
    expect(callNow(() => 1)).toBe(1);
    await expect(callNow(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    void callNow(() => Promise.reject(new Error('broken')));
  });

  it.each([
    [new Error('broken'), /^Error: broken\n/, 'Error'],
    ['text', /^text$/, 'a thrown string'],
    [Object.create(null), /^something without a text$/, 'a thrown object'],
    [UNREADABLE, /^something without a text$/, 'something without a text'],
  ])('can throw anything: %# has a text and a label', (error, text, label) => {
    expect(errorText(error)).toMatch(text);
    expect(errorLabel(error)).toBe(label);
  });
});

describe('the logger of a factory', () => {
  const read = (given: object) => readOptions('factory', given, dependencies('logger', 'schedule'));

  it.each(FAILURES)('that %s is reported once on the console', async (_what, fail) => {
    const said = jest.spyOn(console, 'error').mockImplementation(() => undefined);
    const { logger } = read({ logger: { info: fail, warn: fail, error: fail } });
    for (const level of ['info', 'warn', 'error'] as const) logger[level]({}, 'a line');
    await turn();
    expect(said.mock.calls).toEqual([[expect.stringContaining('tillgate: the logger failed')]]);
    said.mockRestore();
  });

  it('is called with its own this, has one guard, and the console is its own', () => {
    const given = recordingLogger();
    const bound = { ...given, warn: jest.fn().mockReturnThis() };
    const { logger } = read({ logger: bound });
    logger.warn({ a: 1 }, 'a line');
    expect(bound.warn.mock.contexts).toEqual([bound]);
    expect(read({ logger: bound }).logger).toBe(logger);
    expect(guardLogger(logger)).toBe(logger);
    expect(read({}).logger).toBe(consoleLogger);
  });

  it('is the console, whose methods a test environment may replace by ones that throw', () => {
    const said = jest.spyOn(console, 'warn').mockImplementation(() => {
      throw new Error('no warnings in tests');
    });
    consoleLogger.warn({}, 'a line');
    expect(said).toHaveBeenCalledTimes(1);
    said.mockRestore();
  });
});

describe('the schedule of a factory', () => {
  it.each(FAILURES)('ends no process when a task %s: the logger of the same options gets it', async (_what, fail) => {
    const logger = recordingLogger();
    const tasks: (() => void)[] = [];
    const schedule = (task: () => void) => ({ cancel: () => void tasks.push(task), task });
    const guarded = readOptions('factory', { logger, schedule }, dependencies('logger', 'schedule')).schedule;
    guarded(fail, 1_000).cancel();
    tasks.forEach((task) => task());
    await turn();
    expect(logger.at('error')).toEqual([expect.objectContaining({ message: 'a timer failed' })]);
    // Options are handed on to inner factories: they add no second guard.
    expect(readOptions('inner', { schedule: guarded }, dependencies('schedule')).schedule).toBe(guarded);
  });
});
