import express from 'express';
import type { RequestHandler } from 'express';
import request from 'supertest';
import { appendingTo, CAEP, NOW_SECONDS, SUBJECT, event, setUp, sign } from './signals-scene';

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
