import { introspectionEndpoint } from '../../../../src/gate/token/introspection/endpoint';
import { fakeTime } from '../../../support/fake-time';
import { ENDPOINT, SECRET } from '../../../support/introspection';

const ISSUER = 'https://login.test';
const METADATA = `${ISSUER}/.well-known/openid-configuration`;

/** An endpoint whose server responds by URL. */
function endpointAt(
  respond: (url: string) => Response | Promise<Response>,
  options: Partial<Parameters<typeof introspectionEndpoint>[0]> = {},
) {
  const sent: { readonly url: string; readonly init: RequestInit }[] = [];
  const time = fakeTime();
  function checkUrl(url: string): void {
    if (!url.startsWith('https:')) throw new TypeError('not https');
  }
  function fetch(url: string, init: RequestInit): Promise<Response> {
    sent.push({ url, init });
    return Promise.resolve(respond(url));
  }
  const askAbout = introspectionEndpoint(
    { url: ENDPOINT, clientId: 'api:1', clientSecret: SECRET, ...options },
    { issuer: ISSUER, authUrl: ISSUER, checkUrl },
    { fetch, schedule: time.schedule, maxBytes: 1_000 },
  );
  const { signal: never } = new AbortController();
  return { sent, time, ask: (token = 't', signal = never) => askAbout(token, signal) };
}

const messageOf = (asking: Promise<unknown>): Promise<unknown> =>
  asking.then(
    (value) => value,
    (error: Error) => error.message,
  );

describe('introspectionEndpoint(): the request (RFC 7662 section 2.1)', () => {
  it('is a form with the token, authenticated by form-encoded Basic (RFC 6749 section 2.3.1)', async () => {
    const { sent, ask } = endpointAt(() => Response.json({ active: true, sub: 'a' }));
    expect(await ask('a+b/c=&active=true')).toEqual({ active: true, sub: 'a' });
    const [{ url, init } = { url: '', init: {} }] = sent;
    const headers = init.headers as Record<string, string>;
    expect([url, init.method, init.redirect]).toEqual([ENDPOINT, 'POST', 'manual']);
    expect(headers['content-type']).toBe('application/x-www-form-urlencoded');
    expect(headers['accept']).toBe('application/json');
    expect([...new URLSearchParams(init.body as string)]).toEqual([
      ['token', 'a+b/c=&active=true'],
      ['token_type_hint', 'access_token'],
    ]);
    const decoded = Buffer.from(headers['authorization']!.replace('Basic ', ''), 'base64').toString();
    expect(decoded).toBe('api%3A1:a+secret%3A+with+%25%2B%26+umlauts+%C3%B6');
    expect(url + (init.body as string)).not.toContain('secret');
  });
});

describe('introspectionEndpoint(): the response (RFC 7662 section 2.2)', () => {
  it('says that a token is not active', async () => {
    const { ask } = endpointAt(() => Response.json({ active: false, sub: 'a' }));
    expect(await ask()).toBeUndefined();
  });

  const unclear = `${ENDPOINT} did not say whether the token is active`;
  const noObject = `${ENDPOINT} did not respond with a JSON object`;
  const json = (text: string): Response => new Response(text, { headers: { 'content-type': 'application/json' } });
  it.each<[string, () => Response, string]>([
    ['nothing about active', () => json('{"sub":"a"}'), unclear],
    ['active as a string', () => json('{"active":"true"}'), unclear],
    ['active as a number', () => json('{"active":1}'), unclear],
    ['active as null', () => json('{"active":null}'), unclear],
    ['active in another case', () => json('{"Active":true}'), unclear],
    ['active of the prototype', () => json('{"__proto__":{"active":true}}'), unclear],
    ['active twice', () => json('{"active":false,"active":true}'), noObject],
    ['another member twice', () => json('{"active":true,"client_id":"a","client_id":"b"}'), noObject],
    ['an array', () => json('[{"active":true}]'), noObject],
    ['true', () => json('true'), noObject],
    ['a byte order mark', () => json('\ufeff{"active":true}'), noObject],
    [
      'bytes that are not UTF-8',
      () => new Response(Buffer.from('7b22616374697665223a747275652c2261223a22ff227d', 'hex')),
      noObject,
    ],
    ['a signed response (RFC 9701)', () => json('eyJhbGciOiJSUzI1NiJ9.e30.c2ln'), noObject],
    ['nothing', () => json(''), noObject],
    ['no body', () => new Response(null, { status: 200 }), noObject],
    ['a page', () => new Response('<html>'), noObject],
    [
      'too much',
      () => json(`{"active":true,"a":"${'x'.repeat(1_000)}"}`),
      `${ENDPOINT} responded with more than 1000 bytes`,
    ],
    [
      'a redirect',
      () => new Response(null, { status: 302, headers: { location: 'https://x.test' } }),
      `${ENDPOINT} responded with 302; redirects are refused, configure the final URL`,
    ],
    ['another success', () => Response.json({ active: true }, { status: 201 }), `${ENDPOINT} responded with 201`],
    ['401', () => new Response('', { status: 401 }), `${ENDPOINT} responded with 401`],
    ['500', () => Response.json({ active: true }, { status: 500 }), `${ENDPOINT} responded with 500`],
  ])('proves nothing when it is %s', async (_what, respond, message) => {
    expect(await messageOf(endpointAt(respond).ask())).toBe(message);
  });

  it('proves nothing when its body breaks off', async () => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('{"active":true}'));
        controller.error(new Error(SECRET));
      },
    });
    expect(await messageOf(endpointAt(() => new Response(body)).ask())).toBe(`${ENDPOINT} could not be fetched`);
  });
});

describe('introspectionEndpoint(): the URL from the metadata', () => {
  const metadata = (changes: object = {}): Response =>
    Response.json({ issuer: ISSUER, introspection_endpoint: ENDPOINT, ...changes });

  it('is looked up once, and again after a call that failed', async () => {
    let isUp = true;
    const { sent, ask } = endpointAt(
      (url) => {
        if (url === METADATA) return metadata();
        return isUp ? Response.json({ active: false }) : new Response('', { status: 404 });
      },
      { url: undefined },
    );
    await Promise.all([ask(), ask()]);
    await ask();
    const urls = (): readonly string[] => sent.map(({ url }) => url);
    expect(urls()).toEqual([METADATA, ENDPOINT, ENDPOINT, ENDPOINT]);
    expect(JSON.stringify(sent[0]?.init)).not.toContain('Basic');
    isUp = false;
    expect(await messageOf(ask())).toBe(`${ENDPOINT} responded with 404`);
    isUp = true;
    await ask();
    expect(urls().slice(4)).toEqual([ENDPOINT, METADATA, ENDPOINT]);
  });

  it('is looked up for all that wait, whoever of them gives up first', async () => {
    let respond: (response: Response) => void = () => undefined;
    const { time, ask } = endpointAt(
      (url) =>
        url === METADATA ? new Promise((resolve) => (respond = resolve)) : Response.json({ active: true, sub: 'a' }),
      { url: undefined },
    );
    const first = new AbortController();
    const givenUp = messageOf(ask('t1', first.signal));
    const others = [ask('t2'), ask('t3')];
    first.abort('did not respond within 5000 ms');
    expect(await givenUp).toBe(`the metadata of ${ISSUER} did not respond within 5000 ms`);
    respond(metadata());
    expect(await Promise.all(others)).toEqual([
      { active: true, sub: 'a' },
      { active: true, sub: 'a' },
    ]);
    expect(time.pending).toBe(0);
  });

  it('is looked up again after 5 s without a response, also for a call that came in the meantime', async () => {
    const { sent, time, ask } = endpointAt(() => new Promise(() => undefined), { url: undefined });
    const first = messageOf(ask());
    await time.advance(4_000);
    const second = messageOf(ask());
    await time.advance(1_000);
    expect(await Promise.all([first, second])).toEqual([
      `${METADATA} did not respond within 5000 ms`,
      `${METADATA} did not respond within 5000 ms`,
    ]);
    void messageOf(ask());
    expect(sent.map(({ url }) => url)).toEqual([METADATA, METADATA]);
  });

  it.each<[string, object, string]>([
    ['is missing', { introspection_endpoint: undefined }, 'has no usable introspection_endpoint'],
    ['is not a URL', { introspection_endpoint: '/introspect' }, 'has no usable introspection_endpoint'],
    ['is a list', { introspection_endpoint: [ENDPOINT] }, 'has no usable introspection_endpoint'],
    [
      'has no TLS',
      { introspection_endpoint: 'http://login.test/introspect' },
      'names an introspection_endpoint that is neither https: nor on loopback, or that has user info',
    ],
    [
      'is that of another issuer',
      { issuer: 'https://evil.test' },
      'names another issuer: expected "https://login.test", got "https://evil.test"',
    ],
  ])('is not used, and no secret is sent, where it %s', async (_what, changes, message) => {
    const { sent, ask } = endpointAt(() => metadata(changes), { url: undefined });
    expect(await messageOf(ask())).toBe(`${METADATA} ${message}`);
    expect(sent.map(({ url }) => url)).toEqual([METADATA]);
  });
});
