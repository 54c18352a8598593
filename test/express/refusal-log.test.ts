import { gateApp } from '../support/gate-app';
import { fakeTime } from '../support/fake-time';
import { NOW_MS, NOW, token } from '../support/issuer';
import { newKey, testKey } from '../support/keys';

const MINUTE_MS = 60_000;

describe('the log of refusals', () => {
  /** A gate without a logger, and what it writes to the console. */
  function silentGate() {
    const lines: string[] = [];
    const warn = jest.spyOn(console, 'warn').mockImplementation((line: string) => void lines.push(line));
    const time = fakeTime(NOW_MS);
    const through = gateApp({ logger: undefined, clock: time.clock, schedule: time.schedule });
    return { ...through, time, lines, restore: () => warn.mockRestore() };
  }
  /** A token of a client that has expired. */
  const expiredOf = (client_id: string) => token({ claims: { client_id, exp: NOW - 60, iat: NOW - 120 } });
  const line = (message: string, fields: object) => `tillgate: ${message} ${JSON.stringify(fields)}`;
  const EXPIRED = {
    ...{ reason: 'expired', status: 401, issuer: 'https://login.test', clientId: 'till' },
    ...{ method: 'GET', path: '/v1/orders', detail: 'exp was 60 s ago' },
  };
  let gate: ReturnType<typeof silentGate>;

  beforeEach(() => (gate = silentGate()));
  afterEach(async () => {
    await gate.gate.close();
    gate.restore();
  });

  it('without a logger: the first refusal immediately, the others as a count once a minute', async () => {
    for (let request = 0; request < 38; request++) await gate.get(expiredOf('till')).expect(401);
    expect(gate.lines).toEqual([line('request refused', EXPIRED)]);
    await gate.time.advance(MINUTE_MS - 1);
    expect(gate.lines).toHaveLength(1);
    await gate.time.advance(1);
    const counted = { ...EXPIRED, detail: 'exp was 60 s ago' };
    expect(gate.lines.slice(1)).toEqual([line('37 more requests refused: expired', counted)]);
  });

  it('a refusal within the minute after a count waits for the next one; after a quiet minute it is a first one again', async () => {
    await gate.get().expect(401);
    await gate.get().expect(401);
    await gate.time.advance(MINUTE_MS);
    await gate.get().expect(401);
    expect(gate.lines).toHaveLength(2);
    await gate.time.advance(MINUTE_MS);
    const fields = { reason: 'missing_token', status: 401, method: 'GET', path: '/v1/orders' };
    expect(gate.lines.slice(1)).toEqual(Array(2).fill(line('1 more request refused: missing_token', fields)));
    await gate.time.advance(MINUTE_MS);
    expect([gate.lines.length, gate.time.pending]).toEqual([3, 0]);
    await gate.get().expect(401);
    expect(gate.lines.slice(3)).toEqual([line('request refused', fields)]);
  });

  it('counts each reason and client by itself', async () => {
    for (const client of ['till', 'kiosk', 'till']) await gate.get(expiredOf(client)).expect(401);
    await gate.get(token({ claims: { client_id: 'till', scope: 'items:read' } })).expect(403);
    const named = gate.lines.map((text) => /"reason":"(\w+)".*"clientId":"(\w+)"/.exec(text)?.slice(1).join(' '));
    expect(named).toEqual(['expired till', 'expired kiosk', 'insufficient_scope till']);
  });

  it('names no client that no signature vouches for', async () => {
    const forged = { key: { ...newKey('ES256'), kid: testKey().kid } };
    for (const client_id of ['a', 'b']) await gate.get(token({ ...forged, claims: { client_id } })).expect(401);
    const unknown = { key: { ...newKey('ES256'), kid: 'unknown' }, claims: { client_id: 'c', exp: NOW - 60 } };
    await gate.get(token(unknown)).expect(401);
    expect(gate.lines).toEqual([
      line('request refused', { reason: 'bad_signature', status: 401, method: 'GET', path: '/v1/orders' }),
      line('request refused', {
        ...{ reason: 'expired', status: 401, method: 'GET', path: '/v1/orders' },
        detail: 'exp was 60 s ago; its key is unknown, and was not asked for',
      }),
    ]);
  });

  it('a flood of clients costs a hundred lines and timers, then one for each reason', async () => {
    for (let client = 0; client < 150; client++) await gate.get(expiredOf(`client-${client}`)).expect(401);
    expect(gate.lines).toHaveLength(101);
    expect(gate.time.pending).toBe(101);
    const { issuer: _issuer, clientId: _clientId, ...ofMany } = EXPIRED;
    expect(gate.lines.at(-1)).toBe(line('request refused', ofMany));
    await gate.time.advance(MINUTE_MS);
    expect(gate.lines.slice(101)).toEqual([line('49 more requests refused: expired', ofMany)]);
  });

  it('close() writes what is pending, and leaves no timer', async () => {
    await gate.get().expect(401);
    await gate.get().expect(401);
    await gate.gate.close();
    expect(gate.lines.at(-1)).toMatch('1 more request refused: missing_token');
    await gate.get().expect(401);
    expect([gate.lines.length, gate.time.pending]).toEqual([3, 0]);
  });

  it('says nothing about requests that are accepted', async () => {
    await gate.get(token()).expect(200);
    expect([gate.lines, gate.time.pending]).toEqual([[], 0]);
  });

  it('gives a logger of the app each refusal, as one line of bounded length and without the token', async () => {
    const through = gateApp();
    const iss = `https://evil.test/\r\n\u009b\u202e${'x'.repeat(2_000)}`;
    const raw = token({ claims: { iss } });
    for (let request = 0; request < 3; request++) await through.get(raw).expect(401);
    expect(through.log.at('info').map(({ message }) => message)).toEqual(Array(3).fill('request refused'));
    const texts = Object.values(through.log.at('info')[0]?.fields ?? {}).map(String);
    expect(
      texts.filter((text) => text.length > 600 || /[\p{Cc}\p{Cf}]/u.test(text) || raw.includes(text.slice(0, 40))),
    ).toEqual([]);
    expect(through.log.at('info')[0]?.fields['detail']).toMatch(/^iss is "https:\/\/evil\.test\//);
  });
});
