import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import request from 'supertest';
import { appendingTo, CAEP, NOW_SECONDS, SUBJECT, event, foreign, setUp, sign } from './signals-scene';

describe('signalsReceiver()', () => {
  it.each(['token-claims-change', 'credential-change', 'session-revoked'])(
    'publishes the floor of the client that a %s is about',
    async (name) => {
      const { deliver, floors } = setUp();
      const response = await deliver(sign(event({ events: { [CAEP + name]: { event_timestamp: NOW_SECONDS - 5 } } })));
      expect(response.status).toBe(202);
      expect(response.text).toBe('');
      expect(floors()).toEqual([['pos-17', (NOW_SECONDS - 5) * 1000]]);
    },
  );

  it('takes the issue time where an event has no time, and never a later one', async () => {
    const { deliver, floors } = setUp();
    const events = { [`${CAEP}session-revoked`]: {} };
    await deliver(sign(event({ events })));
    expect(floors()).toEqual([['pos-17', NOW_SECONDS * 1000]]);
    const ahead = { [`${CAEP}session-revoked`]: { event_timestamp: NOW_SECONDS + 86_400 } };
    await deliver(sign(event({ jti: 'e2', iat: NOW_SECONDS + 3, events: ahead })));
    expect(floors()).toEqual([['pos-17', (NOW_SECONDS + 3) * 1000]]);
  });

  it('raises the floor to the end of the second where issue times are compared', async () => {
    const { deliver, floors } = setUp({ generationClaim: 'iat' });
    await deliver(sign(event()));
    expect(floors()).toEqual([['pos-17', (NOW_SECONDS - 5) * 1000 + 999]]);
  });

  it('accepts a subject inside the event, as earlier drafts have it', async () => {
    const { deliver, floors } = setUp();
    const events = { [`${CAEP}session-revoked`]: { subject: SUBJECT } };
    expect((await deliver(sign(event({ sub_id: undefined, events })))).status).toBe(202);
    expect(floors()).toEqual([['pos-17', NOW_SECONDS * 1000]]);
  });

  it.each([
    ['an event of another type', { events: { 'https://example.com/other': {} } }],
    ['a subject of another issuer', { sub_id: { ...SUBJECT, iss: 'https://other.test' } }],
    ['a subject of another format', { sub_id: { format: 'email', email: 'a@b.test' } }],
  ])('acknowledges %s and changes nothing', async (_name, claims) => {
    const { deliver, floors } = setUp();
    expect((await deliver(sign(event(claims)))).status).toBe(202);
    expect(floors()).toEqual([]);
  });

  it.each([
    ['a foreign key', sign(event(), {}, foreign.privateKey), 'invalid_key'],
    ['an unknown key', sign(event(), { kid: 'k2' }), 'invalid_key'],
    ['an unknown key of another transmitter', sign(event({ iss: 'https://o.test' }), { kid: 'k2' }), 'invalid_issuer'],
    ['an access token', sign(event(), { typ: 'at+jwt' }), 'invalid_request'],
    ['no type', sign(event(), { typ: undefined }), 'invalid_request'],
    ['another transmitter', sign(event({ iss: 'https://other.test' })), 'invalid_issuer'],
    ['another audience', sign(event({ aud: ['https://other.test'] })), 'invalid_audience'],
    ['no jti', sign(event({ jti: undefined })), 'invalid_request'],
    ['no events', sign(event({ events: {} })), 'invalid_request'],
    ['an issue time in the future', sign(event({ iat: NOW_SECONDS + 60 })), 'invalid_request'],
    ['a negative issue time', sign(event({ iat: -1 })), 'invalid_request'],
    ['an issue time before 2001: its floor would be a counter', sign(event({ iat: 999_999_999 })), 'invalid_request'],
    ['a client id with a zero character', sign(event({ sub_id: { ...SUBJECT, sub: 'a\0b' } })), 'invalid_request'],
    ['a client id with half a surrogate', sign(event({ sub_id: { ...SUBJECT, sub: '\ud800' } })), 'invalid_request'],
    [
      'a client id that no store holds',
      sign(event({ sub_id: { ...SUBJECT, sub: 'é'.repeat(2_049) } })),
      'invalid_request',
    ],
    ['an exp in the past', sign(event({ exp: NOW_SECONDS - 10 })), 'invalid_request'],
    ['an exp that is not a number', sign(event({ exp: String(NOW_SECONDS + 60) })), 'invalid_request'],
    ['no token at all', 'garbage', 'invalid_request'],
    ['64 kB of text', 'a'.repeat(65_537), 'invalid_request'],
  ])('refuses %s', async (_name, body, err) => {
    const { deliver, floors, log } = setUp();
    const response = await deliver(body);
    expect(response.status).toBe(400);
    expect(response.headers['content-type']).toBe('application/json');
    expect(response.body).toEqual({ err, description: expect.any(String) });
    expect(floors()).toEqual([]);
    expect(JSON.stringify(log.entries)).not.toContain(body.slice(0, 200));
  });

  it('responds to a body that is still being sent when it is too large', async () => {
    const server = createServer(setUp().app).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const headers = { 'content-type': 'application/secevent+jwt', 'content-length': '200000' };
    const sent = send({ port, host: '127.0.0.1', path: '/events', method: 'POST', headers });
    sent.write('a'.repeat(70_000));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(400);
    sent.destroy();
    server.closeAllConnections();
    server.close();
  });

  it('accepts POST only, and only its media type', async () => {
    const { app, deliver } = setUp();
    const get = await request(app).get('/events');
    expect([get.status, get.headers['allow']]).toEqual([405, 'POST']);
    expect((await deliver(sign(event()), 'application/json')).status).toBe(415);
  });

  it.each<[string, (res: ServerResponse) => unknown, (res: ServerResponse) => unknown]>([
    ['sent', (res) => res.writeHead(504).end('late'), () => undefined],
    ['begun', (res) => res.writeHead(504).write('la'), (res) => res.end('te')],
  ])('leaves a response alone that a timeout has %s meanwhile', async (_what, begin, finish) => {
    let publish = (): void => {};
    const published = new Promise<void>((resolve) => (publish = resolve));
    const generationSource = appendingTo(() => published);
    const { app } = setUp({ generationSource });
    const responses: ServerResponse[] = [];
    const timed = express().use((_req, res, next) => {
      next();
      responses.push(res);
      begin(res);
    }, app);
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note);
    const sent = request(timed).post('/events').set('Content-Type', 'application/secevent+jwt').send(sign(event()));
    const responded = sent.then(({ status, text }) => [status, text]);
    while (responses.length === 0) await new Promise(setImmediate);
    publish();
    for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
    finish(responses[0]!);
    expect(await responded).toEqual([504, 'late']);
  });

  it('closes the connection when the response cannot be written', async () => {
    const { app } = setUp();
    const broken = express().use((_req, res, next) => {
      res.end = () => {
        throw new Error('broken');
      };
      next();
    }, app);
    const sent = request(broken).post('/events').set('Content-Type', 'application/secevent+jwt').send(sign(event()));
    await expect(sent).rejects.toThrow('socket hang up');
  });

  it('applies a repeated delivery once', async () => {
    const published: unknown[] = [];
    const publish = (...floor: unknown[]): Promise<void> => Promise.resolve(void published.push(floor));
    const { deliver } = setUp({ generationSource: appendingTo(publish) });
    expect((await deliver(sign(event()))).status).toBe(202);
    expect((await deliver(sign(event()))).status).toBe(202);
    expect(published).toEqual([['pos-17', (NOW_SECONDS - 5) * 1000]]);
  });

  it('responds with 503 while the floor cannot be published, and applies the repetition', async () => {
    const outcomes = [Promise.reject(new Error('store down')), Promise.resolve()];
    const publish = (): Promise<void> => outcomes.shift() as Promise<void>;
    const { deliver } = setUp({ generationSource: appendingTo(publish) });
    const response = await deliver(sign(event()));
    expect([response.status, response.headers['retry-after'], response.text]).toEqual([503, '5', '']);
    expect((await deliver(sign(event()))).status).toBe(202);
    expect(outcomes).toEqual([]);
  });
});

it('applies an event once however long its id is, and one whose id begins alike too', async () => {
  const publish = jest.fn(() => Promise.resolve());
  const { deliver } = setUp({ generationSource: appendingTo(publish) });
  const id = 'e'.repeat(300);
  for (const jti of [`${id}1`, `${id}1`, `${id}2`]) await deliver(sign(event({ jti }))).expect(202);
  expect(publish).toHaveBeenCalledTimes(2);
});
