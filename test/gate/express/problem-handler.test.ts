import { createServer } from 'node:http';
import express from 'express';
import type { RequestHandler } from 'express';
import request from 'supertest';
import { AuthError, problemHandler, sendProblem } from '../../../src/gate';
import { recordingLogger } from '../../support/log';
import type { RecordingLogger } from '../../support/log';
import { challengeOf } from '../../support/refusals';
import { gateApp } from '../../support/gate-app';
import { fakeTime } from '../../support/fake-time';
import { NOW_MS, NOW, token } from '../../support/issuer';
import { newKey, testKey } from '../../support/keys';

function appWith(handler: RequestHandler, log: RecordingLogger = recordingLogger()): express.Express {
  const app = express().use(express.json({ limit: 100 }));
  app.use((req, _res, next) => {
    Object.assign(req, { id: 'req-17' });
    next();
  });
  app.all('/x/:id', handler);
  return app.use(problemHandler({ logger: log }));
}

const throwing =
  (error: unknown): RequestHandler =>
  () => {
    throw error;
  };

describe('problemHandler()', () => {
  const internal = {
    type: 'about:blank',
    title: 'Internal Server Error',
    status: 500,
    detail: 'The request could not be processed.',
    code: 'internal_error',
    request_id: 'req-17',
  };

  const claiming = (status: unknown): Error => Object.assign(new Error('password=hunter2'), { status });
  it.each<[string, unknown]>([
    ['an Error', claiming(undefined)],
    ['a string', 'password=hunter2'],
    ['an object', { password: 'hunter2' }],
    ['an error that claims 500', claiming(500)],
    ['an error that claims 200', claiming(200)],
    ['an error that claims 4xx as text', claiming('404')],
    ['an error that claims 404.5', claiming(404.5)],
  ])('responds to %s with 500 without message or stack, and logs it with its route', async (_what, error) => {
    const log = recordingLogger();
    const response = await request(appWith(throwing(error), log)).get('/x/1?token=abc');
    expect([response.status, response.body]).toEqual([500, internal]);
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(log.entries).toHaveLength(1);
    expect(log.entries[0]).toMatchObject({
      level: 'error',
      fields: { route: 'GET /x/:id', requestId: 'req-17' },
      message: 'unexpected error',
    });
  });

  it('responds to an AuthError as its reason says', async () => {
    const error = new AuthError('insufficient_scope', { requiredScopes: ['a'], privateDetail: 'hidden' });
    const response = await request(appWith(throwing(error))).get('/x/1');
    expect(response.status).toBe(403);
    expect(response.headers['www-authenticate']).toBe(challengeOf('insufficient_scope', { scopes: ['a'] }));
    expect(response.body).toMatchObject({ code: 'insufficient_scope', required_scopes: ['a'], request_id: 'req-17' });
    expect(response.text).not.toContain('hidden');
  });

  const unreadable =
    'The request could not be read: check its syntax, for example the JSON of its body and the encoding of its path.';
  const mediaType = 'The media type or encoding of the body is not supported.';
  it.each<[number, string, string, string]>([
    [400, 'invalid_request', 'Bad Request', unreadable],
    [404, 'not_found', 'Not Found', 'No resource has this URL.'],
    [405, 'method_not_allowed', 'Method Not Allowed', 'This resource does not support the method.'],
    [409, 'conflict', 'Conflict', 'The request was refused.'],
    [413, 'payload_too_large', 'Payload Too Large', 'The body is too large.'],
    [415, 'unsupported_media_type', 'Unsupported Media Type', mediaType],
    [418, 'i_m_a_teapot', "I'm a Teapot", 'The request was refused.'],
    [499, 'error', 'Error', 'The request was refused.'],
  ])('responds to an error with status %d in words of its own', async (status, code, title, detail) => {
    const log = recordingLogger();
    const error = Object.assign(new Error('quotes the request: hunter2'), { status });
    const response = await request(appWith(throwing(error), log)).get('/x/1');
    expect(response.status).toBe(status);
    expect(response.body).toEqual({ type: 'about:blank', title, status, detail, code, request_id: 'req-17' });
    expect(log.entries).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ['no headers', undefined, 'Bearer realm="api"'],
    ['null as headers', null, 'Bearer realm="api"'],
    ['other headers', { 'Retry-After': '5' }, 'Bearer realm="api"'],
    ['a challenge of its own', { 'www-authenticate': 'Basic realm="till"' }, 'Basic realm="till"'],
    ['a challenge that would break the header', { 'WWW-Authenticate': 'Basic\r\nX: y' }, 'Bearer realm="api"'],
    ['a challenge that is not a text', { 'WWW-Authenticate': 7 }, 'Bearer realm="api"'],
  ])('responds to an error of the app with status 401 and %s with a challenge', async (_what, headers, challenge) => {
    const error = Object.assign(new Error('quotes the request: hunter2'), { status: 401, headers });
    const response = await request(appWith(throwing(error))).get('/x/1');
    expect([response.status, response.body.code]).toEqual([401, 'unauthorized']);
    expect(response.headers['www-authenticate']).toBe(challenge);
    expect(response.headers).not.toHaveProperty('x');
  });

  it('leaves the challenge that a handler has set, and gives none to other refusals', async () => {
    const refusing = (status: number) =>
      appWith((_req, res) => {
        if (status === 401) res.set('WWW-Authenticate', 'DPoP');
        throw Object.assign(new Error(), { status });
      });
    expect((await request(refusing(401)).get('/x/1')).headers['www-authenticate']).toBe('DPoP');
    expect((await request(refusing(403)).get('/x/1')).headers).not.toHaveProperty('www-authenticate');
  });

  it.each<[string, string, Record<string, string>, number]>([
    ['broken JSON', '{"a":', {}, 400],
    ['a body above the limit', JSON.stringify({ a: 'x'.repeat(200) }), {}, 413],
    ['an unknown encoding', '{}', { 'content-encoding': 'zip' }, 415],
    ['an unknown charset', '{}', { 'content-type': 'application/json; charset=klingon' }, 415],
  ])('responds to %s from a body parser with a problem', async (_what, body, headers, status) => {
    const app = appWith((_req, res) => void res.json('reached'));
    const response = await request(app)
      .post('/x/1')
      .set({ 'content-type': 'application/json', ...headers })
      .send(body);
    expect([response.status, response.body.status]).toEqual([status, status]);
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
  });

  it('responds to a path that cannot be decoded with 400', async () => {
    const response = await request(appWith((_req, res) => void res.json('reached'))).get('/x/%E0%A4%A');
    expect([response.status, response.body.code]).toEqual([400, 'invalid_request']);
  });

  it('breaks off a response that has already begun: half of one must not look complete', async () => {
    const app = appWith((_req, res) => {
      res.writeHead(200, { 'content-length': '100' }).write('half');
      throw new Error('x');
    });
    await expect(request(app).get('/x/1')).rejects.toThrow(/aborted|hang up/);
  });

  it.each([undefined, null])('responds with 500 to %s in the place of an error', async (error) => {
    const handle = problemHandler({ logger: recordingLogger() });
    const server = createServer((req, res) => handle(error, req, res, () => undefined));
    expect((await request(server).get('/')).status).toBe(500);
  });

  it('names the page of each problem where problemTypes says where these are', async () => {
    const typeOf = async (error: unknown): Promise<unknown> => {
      const handler = problemHandler({ logger: recordingLogger(), problemTypes: 'https://api.test/problems/' });
      const app = express().get('/', throwing(error)).use(handler);
      return ((await request(app).get('/')).body as { type: string }).type;
    };
    expect(await typeOf(Object.assign(new Error(), { status: 404 }))).toBe('https://api.test/problems/not_found');
    expect(await typeOf(new Error())).toBe('https://api.test/problems/internal_error');
    expect(await typeOf(new AuthError('expired'))).toBe('https://api.test/problems/invalid_token');
  });

  it('is silent about the ordinary and reports to the console by default', async () => {
    const error = jest.spyOn(console, 'error').mockImplementation();
    try {
      const app = express()
        .get('/', throwing(new Error('broken')))
        .use(problemHandler());
      await request(app).get('/').expect(500);
      expect(error).toHaveBeenCalledWith(expect.stringContaining('tillgate: unexpected error {"route":"GET /"'));
    } finally {
      error.mockRestore();
    }
  });

  it('refuses options it does not know', () => {
    expect(() => problemHandler({ problemTypes: 'problems/' })).toThrow(
      /option "problemTypes" must be an http\(s\) URL/,
    );
    expect(() => problemHandler({ loger: console } as never)).toThrow(
      new TypeError('problemHandler(): unknown option "loger"; did you mean "logger"?'),
    );
  });
});

describe('sendProblem()', () => {
  type Problem = Parameters<typeof sendProblem>[2];

  async function sent(problem: Problem, id?: number) {
    const app = express().get('/', (req, res) => sendProblem(Object.assign(req, { id }), res, problem));
    const { text, headers } = await request(app).get('/').expect(problem.status);
    expect(headers['content-length']).toBe(String(text.length));
    return { text, headers, body: JSON.parse(text) as object };
  }

  it('writes what it is given in a fixed order, with the standard phrase as title, members and headers', async () => {
    const problem = { status: 409, code: 'taken', detail: 'Choose another.', members: { id: 7 } };
    const { text, headers } = await sent({ ...problem, headers: { 'X-A': 'b' } });
    expect(headers['x-a']).toBe('b');
    expect(text).toBe(
      '{"type":"about:blank","title":"Conflict","status":409,"detail":"Choose another.","code":"taken","id":7}',
    );
  });

  it('takes a title and a type, and does without a detail', async () => {
    const { text } = await sent({ status: 499, code: 'closed', type: 'https://x.test/y', title: 'Closed' }, 17);
    expect(text).toBe('{"type":"https://x.test/y","title":"Closed","status":499,"code":"closed","request_id":"17"}');
  });

  it('keeps a request_id among the members, where the request has none', async () => {
    const { body } = await sent({ status: 409, code: 'taken', members: { request_id: 'own' } });
    expect(body).toMatchObject({ request_id: 'own' });
  });

  it.each<[string, Problem]>([
    ['Conflict', { status: 409, code: 'closed', title: 'Closed' }],
    ['Conflict', { status: 409, code: 'closed', title: 'Closed', type: 'about:blank' }],
    ['Closed', { status: 409, code: 'closed', title: 'Closed', type: 'https://x.test/y' }],
    ['Closed', { status: 499, code: 'closed', title: 'Closed' }],
    ['Error', { status: 499, code: 'closed' }],
  ])('has the title %s (RFC 9457 section 4.2.1) for %j', async (title, { type = 'about:blank', ...problem }) => {
    const { status, code } = problem;
    expect((await sent({ type, ...problem })).body).toEqual({ type, title, status, code });
  });
});

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

  it('a flood of clients costs a hundred lines, then one for each reason, and one timer', async () => {
    for (let client = 0; client < 150; client++) await gate.get(expiredOf(`client-${client}`)).expect(401);
    expect(gate.lines).toHaveLength(101);
    expect(gate.time.pending).toBe(1);
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
