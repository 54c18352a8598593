import { functionsCalled } from '../../all/work/called';
import { recordingLogger } from '../../support/log';
import { gateApp } from '../../support/gate-app';
import type { GateApp } from '../../support/gate-app';
import { NOW, token } from '../../support/issuer';

const EXPIRED = { claims: { exp: NOW - 100 } };

/** How often tokens are parsed while something runs. */
async function parsesOf(run: () => PromiseLike<unknown>): Promise<number> {
  const called = await functionsCalled(run);
  return called.find(({ url, name }) => /\/token\/jws\.ts(?:\?|$)/.test(url) && name === 'parseToken')?.count ?? 0;
}

/** A gate that has accepted a token, as one that is configured right. */
async function runningGate(): Promise<GateApp> {
  const through = gateApp({ logger: recordingLogger() });
  await through.get(token()).expect(200);
  return through;
}

describe('a refusal with an observer and a log', () => {
  it('parses an expired token once, and not again when it is known', async () => {
    const through = await runningGate();
    const raw = token(EXPIRED);
    expect(await parsesOf(() => through.get(raw).expect(401))).toBe(1);
    // A token is cached at its second request.
    await through.get(raw).expect(401);
    expect(await parsesOf(() => through.get(raw).expect(401))).toBe(0);
    expect(through.decisions.at(-1)).toMatchObject({ reason: 'expired', clientId: 'pos-17' });
  });

  it('parses a token whose signature is bad once, and knows no client of it', async () => {
    const through = await runningGate();
    const raw = token().slice(0, -8) + 'AAAAAAAA';
    expect(await parsesOf(() => through.get(raw).expect(401))).toBe(1);
    const last = through.decisions.at(-1);
    expect(last).toMatchObject({ reason: 'bad_signature' });
    expect(last).not.toHaveProperty('clientId');
  });
});
