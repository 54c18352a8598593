import express from 'express';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { endWithToken, requireAuthenticated } from '../../../src/gate';
import type { Auth, Gate } from '../../../src/gate';
import { HeldCallers } from '../../../src/gate/verifier/held';
import { memoryGenerations } from '../../../src/gate/generation';
import { fakeTime } from '../../support/fake-time';
import { gateApp, getFrom, testGate } from '../../support/gate-app';
import { ISSUER, NOW_MS, token } from '../../support/issuer';
import type { TokenParts } from '../../support/issuer';
import { eventually } from '../../support/key-server';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

const NOW = NOW_MS / 1000;
const [KEY, OTHER] = [testKey('ES256', 'a'), testKey('ES256', 'b')];

const gates: Gate[] = [];
afterEach(async () => {
  await Promise.all(gates.splice(0).map((gate) => gate.close()));
});

/** A gate with the time and the generations of a test. */
function scene(options: object = {}) {
  const time = fakeTime(NOW_MS);
  const generations = memoryGenerations({ clock: time.clock });
  const keys = { keys: jwks(KEY, OTHER).keys };
  const logger = recordingLogger();
  const { clock, schedule } = time;
  const gate = testGate({ keys, generationSource: generations, clock, schedule, logger, ...options });
  gates.push(gate);
  const ended: string[] = [];

  async function accepted(parts: TokenParts = {}): Promise<Auth> {
    const claims = { generation: NOW_MS, iat: NOW, exp: NOW + 3_600, ...parts.claims };
    const authorization = `Bearer ${token({ key: KEY, ...parts, claims })}`;
    const headers = { authorization };
    const auth = await gate.verify({ method: 'GET', url: '/', headers, rawHeaders: [] } as never);
    return auth as Auth;
  }

  async function hold(parts: TokenParts = {}, name = 'held'): Promise<() => void> {
    return gate.hold(await accepted(parts), (reason) => void ended.push(`${name}: ${reason}`));
  }
  return { gate, time, generations, keys, logger, ended, accepted, hold };
}

const broken = (): never => {
  throw new Error('broken');
};

/** A floor just above the generation of the tokens here. */
const CHANGED = NOW_MS + 1;

describe('gate.hold()', () => {
  it('ends when a change of its client is read, without waiting for the next look; other clients go on', async () => {
    const { time, generations, ended, hold } = scene();
    await hold();
    await hold({ claims: { client_id: 'kiosk-3', sub: 'kiosk-3' } }, 'kiosk');
    await time.advance(1);
    await generations.append([['pos-17', CHANGED]]);
    await time.advance(0);
    expect(ended).toEqual(['held: superseded']);
    await time.advance(10_000);
    expect(ended).toEqual(['held: superseded']);
  });

  it('ends when another token of the client proves a change', async () => {
    const { time, ended, hold, accepted } = scene({ generationSource: undefined });
    await hold();
    await time.advance(1);
    await accepted({ claims: { generation: CHANGED } });
    await time.advance(0);
    expect(ended).toEqual(['held: superseded']);
  });

  it('ends within a second of exp, with the tolerance that requests have', async () => {
    const { time, ended, hold } = scene();
    await hold({ claims: { exp: NOW + 60 } });
    await time.advance(69_900);
    expect(ended).toEqual([]);
    await time.advance(1_100);
    expect(ended).toEqual(['held: expired']);
  });

  it('ends within a second when its key is removed', async () => {
    const { time, keys, ended, hold } = scene();
    await hold();
    await hold({ key: OTHER }, 'other');
    keys.keys = jwks(OTHER).keys;
    await time.advance(1_100);
    expect(ended).toEqual(['held: unknown_key']);
  });

  it.each<[string, () => unknown]>([
    ['are replaced by a broken one', () => [{ kty: 'RSA', n: 'AQAB', e: 'AQAB' }]],
    ['cannot be read', broken],
  ])('ends within a second when given keys %s: a request would get 500', async (_what, get) => {
    const { gate, time, keys, ended, accepted, hold } = scene();
    await hold();
    Object.defineProperty(keys, 'keys', { configurable: true, get });
    await time.advance(1_100);
    expect(ended).toEqual(['held: keys_unavailable']);
    expect(gate.status()).toMatchObject({ ready: false, issuers: [{ keys: { state: 'unavailable', keys: 0 } }] });
    await expect(accepted()).rejects.toThrow();
    Object.defineProperty(keys, 'keys', { value: [] });
  });

  it('ends within a second once requests get 503', async () => {
    const source = { mark: false, reader: () => ({ next, close() {} }) };
    let reads = 0;
    const next = (): Promise<unknown> =>
      reads++ === 0 ? Promise.resolve({ changes: [], end: true }) : Promise.reject(new Error('down'));
    const { time, ended, hold } = scene({ generationSource: source, maxStalenessMs: 10_000 });
    await time.advance(1);
    await hold();
    await time.advance(9_900);
    expect(ended).toEqual([]);
    await time.advance(1_200);
    expect(ended).toEqual(['held: generations_unavailable']);
  });

  it('ends when the gate is closed, and what is held afterwards ends immediately', async () => {
    const { gate, time, ended, hold, accepted } = scene();
    await hold();
    const auth = await accepted();
    await gate.close();
    expect(ended).toEqual(['held: gate_closed']);
    gate.hold(auth, (reason) => void ended.push(`late: ${reason}`));
    await time.advance(0);
    expect(ended).toEqual(['held: gate_closed', 'late: gate_closed']);
  });

  it('ends a token that has died between its request and hold()', async () => {
    const { time, generations, ended, accepted, gate } = scene();
    const auth = await accepted();
    await time.advance(1);
    await generations.append([['pos-17', CHANGED]]);
    await time.advance(0);
    gate.hold(auth, (reason) => void ended.push(reason));
    expect(ended).toEqual([]);
    await time.advance(0);
    expect(ended).toEqual(['superseded']);
  });

  it('calls nothing once it was released, and keeps no timer', async () => {
    const { time, generations, ended, hold } = scene();
    const before = time.pending;
    const release = await hold();
    const kept = await hold({}, 'kept');
    release();
    release();
    await time.advance(1);
    await generations.append([['pos-17', CHANGED]]);
    await time.advance(1_000);
    kept();
    expect(ended).toEqual(['kept: superseded']);
    expect(time.pending).toBeLessThanOrEqual(before);
  });

  it('looks at each of many within a second, a part at a time', async () => {
    const { time, ended, hold } = scene();
    for (let index = 0; index < 200; index++) {
      const name = `till-${index}`;
      await hold({ claims: { client_id: name, sub: name, exp: NOW + 60 } }, name);
    }
    await time.advance(69_900);
    const before = ended.length;
    await time.advance(100);
    expect(ended.length - before).toBeLessThan(50);
    await time.advance(1_000);
    expect(new Set(ended).size).toBe(200);
  });

  it.each<[string, () => unknown]>([
    ['throws', broken],
    ['rejects', () => Promise.reject(new Error('broken'))],
    ['throws what has no text', () => Promise.reject(Object.create(null) as Error)],
  ])('logs an end that %s, and ends the others', async (_what, end) => {
    const { gate, time, generations, ended, hold, accepted, logger } = scene();
    gate.hold(await accepted(), end);
    await hold();
    await time.advance(1);
    await generations.append([['pos-17', CHANGED]]);
    await time.advance(0);
    expect(ended).toEqual(['held: superseded']);
    expect(logger.at('error')).toEqual([expect.objectContaining({ message: 'the function given to hold() failed' })]);
  });

  it('costs for 10,000 connections of one client what it costs for as many clients, and looks at no other to hold one', async () => {
    const costs = [(): string => 'pos-17', (index: number): string => `pos-${index}`].map(async (clientOf) => {
      const time = fakeTime();
      let looks = 0;
      const verifier = { recheck: () => void looks++, onFloor: () => undefined };
      const held = new HeldCallers(verifier, { schedule: time.schedule, logger: recordingLogger() });
      for (let index = 0; index < 10_000; index++) {
        held.hold({ issuer: ISSUER, clientId: clientOf(index) } as Auth, () => undefined);
      }
      const toHold = looks;
      await time.advance(1_000);
      return { toHold, inSecond: looks - toHold, timers: time.pending };
    });
    const [one, many] = await Promise.all(costs);
    expect(one).toEqual(many);
    expect(one).toEqual({ toHold: 10_000, inSecond: 10_000, timers: 1 });
  });

  it('refuses a caller that this gate has not accepted, and anything but a function', async () => {
    const { gate, accepted } = scene();
    const other = await scene().accepted();
    const expected = 'hold(): expected a caller that this gate has accepted, such as req.auth';
    for (const auth of [other, { ...(await accepted()) }, {} as Auth]) {
      expect(() => gate.hold(auth, () => undefined)).toThrow(new TypeError(expected));
    }
    const auth = await accepted();
    expect(() => gate.hold(auth, undefined as never)).toThrow(TypeError);
  });
});

describe('endWithToken()', () => {
  /** A request on a real connection: what has arrived, and how it ended. */
  async function open(port: number, path: string, raw: string) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${raw}` } });
    const result = { status: response.status, text: '', outcome: 'open' };
    const reading = (async () => {
      try {
        for await (const chunk of response.body ?? []) result.text += Buffer.from(chunk as Uint8Array).toString();
        result.outcome = 'complete';
      } catch {
        result.outcome = 'cut off';
      }
    })();
    return { result, reading };
  }

  it('ends an event stream as usual, and cuts off any other response', async () => {
    const time = fakeTime(NOW_MS);
    const generations = memoryGenerations({ clock: time.clock });
    const { app, gate } = gateApp({
      ...{ generationSource: generations, clock: time.clock, schedule: time.schedule, unguarded: 'refuse' },
      routes: (routes) => {
        routes.get('/v1/:type', requireAuthenticated(), endWithToken(), (req, res) => {
          res.type(req.params['type'] === 'events' ? 'text/event-stream' : 'text/csv').write('first\n\n');
          // A handler that goes on writing must not end the process.
          for (const event of ['prefinish', 'close']) res.once(event, () => void res.write('late'));
        });
      },
    });
    gates.push(gate);
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const raw = token({ claims: { generation: NOW_MS } });
    const [events, download] = [await open(port, '/v1/events', raw), await open(port, '/v1/download', raw)];
    expect([events.result.status, download.result.status]).toEqual([200, 200]);
    await time.advance(1);
    await generations.append([['pos-17', CHANGED]]);
    await time.advance(0);
    await Promise.all([events.reading, download.reading]);
    expect([events.result.outcome, download.result.outcome]).toEqual(['complete', 'cut off']);
    expect(events.result.text).toBe('first\n\n');
    await turn();
    server.close();
    expect((await fetch(`http://127.0.0.1:${port}/`).catch(() => ({ status: 'closed' }))).status).toBe('closed');
  });

  it('holds nothing for a client that has gone before, nor for a pipelined response that never gets its socket', async () => {
    const time = fakeTime(NOW_MS);
    let reached = 0;
    const { app, gate } = gateApp({
      ...{ clock: time.clock, schedule: time.schedule },
      routes: (routes) => {
        routes.get(
          '/v1/slow',
          requireAuthenticated(),
          (_req, res, next) => void res.once('close', () => setImmediate(next)),
        );
        routes.get('/v1/:name', requireAuthenticated());
        routes.use(endWithToken(), () => void reached++);
      },
    });
    gates.push(gate);
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    let open = 0;
    server.on('connection', (socket) => {
      open++;
      socket.once('close', () => void open--);
    });
    const before = time.pending;
    for (const paths of [['slow'], ['first', 'second', 'third']]) {
      const expected = reached + paths.length;
      const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
      const lines = `Host: x\r\nAuthorization: Bearer ${token({ claims: { generation: NOW_MS } })}\r\n\r\n`;
      client.write(paths.map((path) => `GET /v1/${path} HTTP/1.1\r\n${lines}`).join(''));
      if (paths.length > 1) await eventually(() => reached === expected);
      else await once(server, 'request');
      client.resetAndDestroy();
      await eventually(() => reached === expected && open === 0);
    }
    await time.advance(1_100);
    expect(time.pending).toBe(before);
    server.close();
  });

  it('allows nothing without a gate before it, and says what it is when it was not called', async () => {
    const error = jest.spyOn(console, 'error').mockImplementation(() => undefined);
    const app = express().get('/', endWithToken(), (_req, res) => void res.json('reached'));
    await getFrom(app).expect(500);
    error.mockRestore();
    expect(() => endWithToken(...([{ httpVersion: '1.1', headers: {} }] as unknown as []))).toThrow(
      'endWithToken is registered as a middleware without being called: write endWithToken()',
    );
  });
});
