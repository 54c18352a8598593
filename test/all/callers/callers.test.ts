import { PROGRAMS, runAfterChange } from './callers';

/** The examples of examples/callers/ and the client, as processes of their own. `npm run callers` runs the other languages too. */
it.each([PROGRAMS.client, PROGRAMS.openid])(
  '$library: 100 calls after a change cost one token request',
  async (program) => {
    const { before, first, changed, after, tokenRequests } = await runAfterChange(program);
    expect([before, first, changed]).toEqual([[200], 1, 200]);
    expect(after).toEqual(Array.from({ length: 100 }, () => 200));
    expect(tokenRequests).toBe(1);
  },
);
