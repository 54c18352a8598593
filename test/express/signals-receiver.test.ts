import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { RequestHandler } from 'express';
import request from 'supertest';
import { appendingTo, CAEP, NOW_SECONDS, SUBJECT, event, foreign, setUp, sign } from './signals-scene';

describe('security events', () => {
  describe('signalsReceiver()', () => {
    it.each(['token-claims-change', 'credential-change', 'session-revoked'])(
      'publishes the floor of the client that a %s is about',
      async (name) => {
        const { deliver, floors } = setUp();
        const response = await deliver(
          sign(event({ events: { [CAEP + name]: { event_timestamp: NOW_SECONDS - 5 } } })),
        );
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
      [
        'an unknown key of another transmitter',
        sign(event({ iss: 'https://o.test' }), { kid: 'k2' }),
        'invalid_issuer',
      ],
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
});

const MEDIA_TYPE = 'application/secevent+jwt';
const REVOKED = `${CAEP}session-revoked`;

describe('security events: the floor', () => {
  it.each<[string, unknown, number]>([
    ['in seconds with a fraction, rounded down', { event_timestamp: NOW_SECONDS - 0.9999 }, NOW_SECONDS * 1000 - 1_000],
    ['of September 2001, the first that is a time', { event_timestamp: 1e9 }, 1e12],
    ['before that, which is not a time', { event_timestamp: 1e9 - 1 }, NOW_SECONDS * 1000],
    ['that is not a number', { event_timestamp: String(NOW_SECONDS - 5) }, NOW_SECONDS * 1000],
    ['in a payload that is null', null, NOW_SECONDS * 1000],
    ['in a payload that is not an object', 'revoked', NOW_SECONDS * 1000],
  ])('follows an event_timestamp %s', async (_what, payload, floor) => {
    const { deliver, floors } = setUp();
    await deliver(sign(event({ events: { [REVOKED]: payload } }))).expect(202);
    expect(floors()).toEqual([['pos-17', floor]]);
  });

  it('is that of the issue time from September 2001 on', async () => {
    const { deliver, floors } = setUp();
    await deliver(sign(event({ iat: 1e9 }))).expect(202);
    expect(floors()).toEqual([['pos-17', 1e12]]);
  });

  it('is published for every event of a token, and for the longest client id that stores hold', async () => {
    const longest = 'é'.repeat(2_048);
    const { deliver, floors } = setUp();
    const events = {
      'https://example.test/other': {},
      [REVOKED]: {},
      [`${CAEP}credential-change`]: { event_timestamp: NOW_SECONDS + 1 },
    };
    await deliver(sign(event({ sub_id: { ...SUBJECT, sub: longest }, events }))).expect(202);
    expect(floors()).toEqual([[longest, NOW_SECONDS * 1000]]);
  });

  it.each<[string, string, unknown]>([
    ['another kind of event', 'https://example.test/other', {}],
    ['an event about a client of another issuer', `${CAEP}token-claims-change`, { ...SUBJECT, iss: 'https://x.test' }],
    ['an event about a user', `${CAEP}token-claims-change`, { format: 'email', email: 'a@shop.test' }],
    ['an event about nobody', `${CAEP}token-claims-change`, undefined],
  ])('is raised by an event after %s, and by the one after that', async (_what, type, subject) => {
    const { deliver, floors } = setUp();
    const events = {
      [type]: { subject },
      [REVOKED]: { subject: SUBJECT },
      [`${CAEP}credential-change`]: { subject: { ...SUBJECT, sub: 'kiosk' }, event_timestamp: NOW_SECONDS - 5 },
    };
    await deliver(sign(event({ sub_id: undefined, events }))).expect(202);
    expect(floors()).toEqual([
      ['pos-17', NOW_SECONDS * 1000],
      ['kiosk', (NOW_SECONDS - 5) * 1000],
    ]);
  });

  it.each([
    ['an empty sub', { ...SUBJECT, sub: '' }],
    ['a sub that is not a text', { ...SUBJECT, sub: 17 }],
    ['another format with the members of this one', { ...SUBJECT, format: 'opaque' }],
    ['no subject', undefined],
  ])('is not raised for %s', async (_what, sub_id) => {
    const { deliver, floors, log } = setUp();
    await deliver(sign(event({ sub_id }))).expect(202);
    expect(floors()).toEqual([]);
    expect(log.entries).toEqual([
      {
        level: 'info',
        fields: { transmitter: 'https://login.test', type: `${CAEP}credential-change`, tokenId: 'e1' },
        message: 'a security event is about no client of the issuer',
      },
    ]);
  });
});

describe('security events: the response and the log', () => {
  it('acknowledges with 202 and nothing else, and logs whose floor has moved', async () => {
    const { deliver, log } = setUp();
    const { headers, text } = await deliver(sign(event()));
    expect([headers['cache-control'], headers['content-type'], text]).toEqual(['no-store', undefined, '']);
    expect(log.entries).toEqual([
      {
        level: 'info',
        fields: {
          transmitter: 'https://login.test',
          type: `${CAEP}credential-change`,
          tokenId: 'e1',
          clientId: 'pos-17',
        },
        message: 'a security event raised the floor of a client',
      },
    ]);
  });

  it.each([
    [{ exp: 1 }, 'The token has expired.', 'expired', undefined],
    [
      { jti: '' },
      'A required claim of the token is missing or of the wrong type.',
      'invalid_claims',
      'jti is not a non-empty string',
    ],
    [
      { iat: 1e9 - 1 },
      'A required claim of the token is missing or of the wrong type.',
      'invalid_claims',
      'iat is before 2001',
    ],
    [
      { sub_id: { ...SUBJECT, sub: 'x'.repeat(2_049) } },
      'A required claim of the token is missing or of the wrong type.',
      'invalid_claims',
      'sub cannot be stored',
    ],
    [
      { sub_id: { ...SUBJECT, sub: '\0' } },
      'A required claim of the token is missing or of the wrong type.',
      'invalid_claims',
      'sub cannot be stored',
    ],
  ])('refuses %j in words of its own, and tells operators why', async (claims, description, reason, detail) => {
    const { deliver, log } = setUp();
    const { status, headers, body } = await deliver(sign(event(claims)));
    expect([status, headers['cache-control'], body]).toEqual([
      400,
      'no-store',
      { err: 'invalid_request', description },
    ]);
    const fields = { transmitter: 'https://login.test', reason, detail };
    expect(log.entries).toEqual([{ level: 'warn', fields, message: 'a security event was refused' }]);
  });

  it('says how large a body may be', async () => {
    const { deliver } = setUp();
    expect((await deliver('a'.repeat(65_537))).body.description).toBe('The body is larger than 65536 bytes.');
    expect((await deliver('a'.repeat(65_536))).body.description).toBe('The token is not a well-formed JSON Web Token.');
  });

  it.each<[string, unknown, string]>([
    ['an Error', new Error('store down'), 'store down'],
    ['something else', 'store down', ''],
  ])('logs why a floor could not be published: %s', async (_what, error, detail) => {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a source may reject with anything
    const publish = (): Promise<void> => Promise.reject(error);
    const { deliver, log } = setUp({ generationSource: appendingTo(publish) });
    await deliver(sign(event())).expect(503);
    const fields = { transmitter: 'https://login.test', detail };
    expect(log.entries).toEqual([{ level: 'error', fields, message: 'a security event was not applied' }]);
  });
});

describe('security events: the body', () => {
  const parsers: readonly [string, RequestHandler[]][] = [
    ['nothing has read', []],
    ['a text parser has read', [express.text({ type: MEDIA_TYPE, limit: '1mb' })]],
    ['a raw parser has read', [express.raw({ type: MEDIA_TYPE, limit: '1mb' })]],
    ['a JSON parser has not touched', [express.json()]],
  ];
  it.each(parsers)('that %s is accepted, with a line break after it, up to 64 KiB', async (_what, before) => {
    const { app, floors } = setUp();
    const outer = express().use(...before, (_req, _res, next) => next(), app);
    const deliver = (body: string): request.Test =>
      request(outer).post('/events').set('Content-Type', `${MEDIA_TYPE} ; charset=utf-8`).send(body);
    await deliver(`${sign(event())}\r\n`).expect(202);
    expect(floors()).toHaveLength(1);
    const { body } = await deliver('a'.repeat(65_537));
    expect(body.description).toBe('The body is larger than 65536 bytes.');
    const largest = await deliver('a'.repeat(65_536));
    expect(largest.body.description).toBe('The token is not a well-formed JSON Web Token.');
  });

  it.each([undefined, 'application/secevent+jwtx', 'text/application/secevent+jwt'])(
    'of content type %s is refused with 415',
    async (type) => {
      const { app } = setUp();
      const post = request(app).post('/events');
      const { status, headers } = await (type === undefined ? post : post.set('Content-Type', type));
      expect([status, headers['content-type']]).toEqual([415, undefined]);
    },
  );
});
