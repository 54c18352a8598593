import { timeHint } from '../../../src/gate/core/clock';

const FAKED = ': the test has faked Date; give the gate the clock of its tokens, such as clock: issuer.clock.now';

describe('what a text about times adds', () => {
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('is nothing with the real Date', () => {
    expect(timeHint()).toBe('');
    expect(timeHint(3_600)).toBe('');
  });

  it.each<[how: string, fake: () => unknown]>([
    ['Date.now by a spy', () => jest.spyOn(Date, 'now').mockReturnValue(0)],
    ['timers and Date of Jest', () => jest.useFakeTimers()],
    ['Date of Jest alone', () => jest.useFakeTimers({ doNotFake: ['setTimeout', 'setImmediate', 'nextTick'], now: 0 })],
  ])('names the clock of the issuer where a test has faked %s', (_how, fake) => {
    fake();
    expect(timeHint()).toBe(FAKED);
  });

  it('names the unit of a time in ms', () => {
    expect(timeHint(1.8e12)).toBe(': times are in seconds (RFC 7519 section 2), not in ms');
  });
});
