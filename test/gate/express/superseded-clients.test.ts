import { explain } from '../../../src/gate/index';
import { memoryGenerations } from '../../../src/gate/generation';
import { gateApp } from '../../support/gate-app';
import type { GateApp } from '../../support/gate-app';
import { GENERATION, ISSUER, NOW_MS, token } from '../../support/issuer';

const MINUTE_MS = 60_000;
const CHANGED = GENERATION + 1;
const tokenOf = (client_id: string, generation = GENERATION): string =>
  token({ claims: { client_id, sub: client_id, generation } });

interface Scene extends Pick<GateApp, 'gate' | 'reached'> {
  /** GET of `/v1/orders` with a token. */
  readonly get: (token: string) => ReturnType<GateApp['get']>;
  /** Advances the clock by `ms`. */
  readonly wait: (ms: number) => void;
  /** Clients that are out, as `status()` has them. */
  readonly out: () => number | undefined;
  /** Lines about clients that are out. */
  readonly lines: () => readonly object[];
}

/** A gate after the credentials of these clients have changed. */
async function scene(...clients: readonly string[]): Promise<Scene> {
  let nowMs = NOW_MS;
  const generationSource = memoryGenerations({ clock: () => nowMs });
  const made = gateApp({ generationSource, maxStalenessMs: 60 * MINUTE_MS, clock: () => nowMs });
  await generationSource.append(clients.map((client) => [client, CHANGED] as const));
  await made.gate.ready();
  return {
    gate: made.gate,
    reached: made.reached,
    get: (raw) => made.get(raw),
    wait: (ms) => void (nowMs += ms),
    out: () => made.gate.status().issuers[0]?.generations?.supersededClients,
    lines: () => made.log.at('warn').flatMap(({ fields, message }) => (message === NOT_RECOVERED ? [fields] : [])),
  };
}

const NOT_RECOVERED =
  'a caller still sends a token from before the change of its credential: it has not fetched a new one, see docs/callers.md';

describe('clients whose callers do not fetch a new token', () => {
  it('are counted until five minutes after their last superseded token', async () => {
    const { get, reached, gate, wait, out } = await scene('till-1', 'till-2');
    expect(out()).toBeUndefined();
    for (const client of ['till-1', 'till-1', 'till-2']) expect((await get(tokenOf(client))).status).toBe(401);
    expect(out()).toBe(2);
    wait(5 * MINUTE_MS - 1);
    expect((await get(tokenOf('till-1'))).status).toBe(401);
    expect(out()).toBe(2);
    wait(1);
    expect(out()).toBe(1);
    wait(5 * MINUTE_MS);
    expect(out()).toBeUndefined();
    expect(reached).toEqual([]);
    await gate.close();
  });

  it('are logged once each, with their requests and since when, a minute after the first', async () => {
    const { get, gate, wait, lines } = await scene('till-1', 'till-2');
    for (const ms of [0, MINUTE_MS - 1]) {
      wait(ms);
      expect((await get(tokenOf('till-1'))).status).toBe(401);
    }
    expect(lines()).toEqual([]);
    wait(1);
    for (let i = 0; i < 3; i++) expect((await get(tokenOf('till-1'))).status).toBe(401);
    const line = { issuer: ISSUER, clientId: 'till-1', count: 3, since: new Date(NOW_MS).toISOString() };
    expect(lines()).toEqual([line]);
    await gate.close();
  });

  it('are logged again if they come back after more than five minutes', async () => {
    const { get, gate, wait, lines } = await scene('till-1');
    for (const ms of [0, MINUTE_MS, 5 * MINUTE_MS, MINUTE_MS]) {
      wait(ms);
      expect((await get(tokenOf('till-1'))).status).toBe(401);
    }
    expect(lines()).toMatchObject([
      { count: 2, since: new Date(NOW_MS).toISOString() },
      { count: 2, since: new Date(NOW_MS + 6 * MINUTE_MS).toISOString() },
    ]);
    await gate.close();
  });

  it('are not those that fetched a new token after the first refusal', async () => {
    const { get, reached, gate, wait, lines } = await scene('till-1');
    expect((await get(tokenOf('till-1'))).status).toBe(401);
    wait(2 * MINUTE_MS);
    expect((await get(tokenOf('till-1', CHANGED))).status).toBe(200);
    expect([lines(), reached]).toEqual([[], ['GET /v1/orders']]);
    await gate.close();
  });

  it('are not counted by explain(): nobody has sent that token', async () => {
    const { gate, out } = await scene('till-1');
    expect((await explain(tokenOf('till-1'), { gate })).accepted).toBe(false);
    expect(out()).toBeUndefined();
    await gate.close();
  });

  it('are 1,000 at most', async () => {
    const clients = Array.from({ length: 1_001 }, (_, index) => `till-${index}`);
    const { gate, out } = await scene(...clients);
    for (const client of clients) {
      const headers = { authorization: `Bearer ${tokenOf(client)}` };
      const request = new Request('http://api.test/v1/orders', { headers });
      await expect(gate.verify(request)).rejects.toMatchObject({ reason: 'superseded' });
    }
    expect(out()).toBe(1_000);
    await gate.close();
  });
});
