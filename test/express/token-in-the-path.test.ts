import { gateApp } from '../support/gate-app';
import { token } from '../support/issuer';

/** A bug that was: the path went into log and `onDecision` as it came, with a token that somebody had put there. */
describe('a token in the path', () => {
  it('reaches neither the log nor onDecision', async () => {
    const misplaced = token({ claims: { scope: '' } });
    const through = gateApp();

    await through.get(undefined, `/v1/orders/${misplaced}`).expect(401);
    await through.get(misplaced, `/v1/orders/${misplaced}`).expect(404);
    await through.get(misplaced, `/v1/orders?token=${misplaced}`).expect(403);

    expect(through.decisions.map(({ path }) => path)).toEqual([
      expect.stringMatching(/^\/v1\/orders\/\[\d+\]$/),
      expect.stringMatching(/^\/v1\/orders\/\[\d+\]$/),
      '/v1/orders',
      '/v1/orders',
    ]);
    const told = JSON.stringify([through.log.entries, through.decisions.map(({ path }) => path)]);
    for (const part of misplaced.split('.')) expect(told).not.toContain(part);
  });
});
