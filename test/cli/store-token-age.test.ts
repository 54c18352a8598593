import { memoryGenerations } from '../../src/generation';
import type * as fromUrlModule from '../../src/generation/from-url';
import { cliScene } from './harness';

const mockOpened: (number | undefined)[] = [];

jest.mock('../../src/generation/from-url', (): Partial<typeof fromUrlModule> => ({
  generationsFromUrl(_url, dependencies) {
    mockOpened.push(dependencies?.maxTokenAgeMs);
    return memoryGenerations();
  },
}));

/** Some 30 years: nothing is removed. */
const KEEP_ALL = 1e12;
const URL = 'redis://store.test';

describe('the age from which floors are removed from the store that a command publishes to', () => {
  it.each([
    ['that of the settings, with their store', { TILLGATE_GENERATIONS: URL }, [], 86_400_000],
    [
      'that of TILLGATE_MAX_TOKEN_AGE_SECONDS',
      { TILLGATE_GENERATIONS: URL, TILLGATE_MAX_TOKEN_AGE_SECONDS: '600' },
      [],
      600_000,
    ],
    ['none for a store that only --generations names', {}, ['--generations', URL], KEEP_ALL],
    [
      'that of TILLGATE_MAX_TOKEN_AGE_SECONDS for --generations too',
      { TILLGATE_MAX_TOKEN_AGE_SECONDS: '600' },
      ['--generations', URL],
      600_000,
    ],
  ])('is %s', async (_what, env, argv, expected) => {
    mockOpened.length = 0;
    const scene = cliScene({ env });
    const { exitCode } = await scene.run('generations', 'publish', 'till-2', ...argv);
    scene.close();
    expect([exitCode, mockOpened]).toEqual([0, [expected]]);
  });
});
