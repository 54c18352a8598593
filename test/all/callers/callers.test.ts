import { afterChange, atTheLimit, missingFor, PROGRAMS, redirected, whileUnavailable } from './callers';

const all = (count: number, outcome: unknown): readonly unknown[] => Array.from({ length: count }, () => outcome);

/** The client and the examples of examples/callers/, as processes of their own. */
describe.each(Object.values(PROGRAMS))('$library, $language', (program) => {
  const missing = missingFor(program);
  if (missing !== undefined) {
    it.skip(`is skipped: ${missing}`, () => undefined);
    return;
  }

  it('calls 100 times after a change at the cost of one token request', async () => {
    expect(await afterChange(program, 'stamped')).toEqual({ outcomes: all(100, 200), tokenRequests: 1 });
  });

  it('makes two token requests where the time of issue is compared, in the second of the change', async () => {
    expect(await afterChange(program, 'iat')).toEqual({ outcomes: all(100, 200), tokenRequests: 2 });
  });

  it('keeps its token on a 503', async () => {
    const { outcomes, tokenRequests } = await whileUnavailable(program);
    // The client waits for Retry-After, the examples return the response.
    expect([outcomes, tokenRequests]).toEqual([[program === PROGRAMS.client ? 200 : 503], 0]);
  });

  it('makes no token request before the Retry-After of the token endpoint is over: all calls fail alike', async () => {
    const [first, later] = await atTheLimit(program);
    expect([first.tokenRequests, later.tokenRequests]).toEqual([1, 0]);
    expect(first.outcomes[0]).toEqual(expect.any(String));
    expect([...first.outcomes, ...later.outcomes]).toEqual(all(200, first.outcomes[0]));
  });

  it('sends no token to another host that the API redirects to, and requests none for it', async () => {
    const { outcomes, tokenRequests, leaked } = await redirected(program);
    expect([tokenRequests, leaked]).toEqual([0, []]);
    expect([[307], [401]]).toContainEqual(outcomes);
  });
});
