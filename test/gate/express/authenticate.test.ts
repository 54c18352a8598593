import { authenticate, ConfigurationError, explain } from '../../../src/gate';
import { rememberEnvironment } from '../../support/environment';
import { gateApp, testGate } from '../../support/gate-app';
import { AUDIENCE, ISSUER, token, NOW_MS, GENERATION } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { memoryGenerations } from '../../../src/gate/generation';
import type { GenerationSource } from '../../../src/gate/generation';
import type { Fetch } from '../../../src/gate/net/http';
import { fakeTime, settle } from '../../support/fake-time';
import { serveLog } from '../generation/http/scene';
import { eventually, keyServer } from '../../support/key-server';

const KEYS = jwks(testKey());
const JWKS_URI = 'https://login.test/jwks';
const idle = () => ({ cancel() {} });

describe('authenticate(): good options', () => {
  it('leaves them alone: frozen ones work, and stay as they were', async () => {
    const algorithms = Object.freeze(['ES256'] as const);
    const audience = Object.freeze([AUDIENCE]);
    const options = Object.freeze({ keys: deepFreeze(KEYS), algorithms, audience, generationClaim: 'generation' });
    const before = JSON.stringify(options);
    await gateApp(options).get(token()).expect(200);
    expect(JSON.stringify(options)).toBe(before);
  });

  it('takes undefined for left out', async () => {
    const names = ['authUrl', 'preset', 'realm', 'maxStalenessMs', 'fetch'];
    const leftOut = Object.fromEntries(names.map((name) => [name, undefined]));
    await gateApp({ ...leftOut, keys: KEYS })
      .get(token())
      .expect(200);
  });

  it('takes an issuer that is not a URL where keys are given', async () => {
    const raw = token({ claims: { iss: 'till-17' } });
    await gateApp({ issuer: 'till-17' }).get(raw).expect(200);
  });

  it.each([
    ['on loopback', { issuer: 'http://localhost:4000' }],
    ['with allowHttp', { issuer: 'http://login.test', allowHttp: true }],
  ])('takes http: %s', async (_where, options) => {
    await testGate({ ...options, keys: undefined, fetch: down, schedule: idle }).close();
  });

  it('is a function named authenticate with ready, status and close', async () => {
    const { gate } = gateApp();
    expect(gate.name).toBe('authenticate');
    await gate.ready();
    const generations = { source: 'none', changes: 'not at all', floors: 0, reads: 0, failures: 0 };
    expect(gate.status()).toEqual({
      ready: true,
      issuers: [
        {
          issuer: ISSUER,
          preset: { name: 'rfc9068', chosenBy: 'default' },
          keys: { state: 'fresh', keys: 1 },
          generations,
        },
      ],
    });
    await gate.close();
  });

  it.each([
    ['nothing where there is a source', memoryGenerations(), []],
    [
      'once, at construction, where there is none: nothing is refused',
      undefined,
      [
        {
          level: 'warn',
          fields: { issuer: ISSUER },
          message:
            "generationClaim is 'iat', and there is no generationSource to compare it with: tokens are accepted until they expire",
        },
      ],
    ],
  ])("with generationClaim: 'iat' says %s", async (_what, generationSource, lines) => {
    const through = gateApp({ generationClaim: 'iat', generationSource });
    await through.gate.ready();
    expect(through.log.entries).toEqual(lines);
    for (let times = 0; times < 2; times++) await through.get(token()).expect(200);
    expect(through.log.entries).toEqual(lines);
    await through.gate.close();
  });
});

describe('authenticate() without options', () => {
  afterEach(rememberEnvironment());

  it('reads the TILLGATE_* variables, and says all that is wrong with them', () => {
    Object.assign(process.env, { TILLGATE_PORT: 'abc', TILLGATE_PRESET: 'azure' });
    expect.assertions(3);
    try {
      authenticate();
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigurationError);
      for (const name of ['TILLGATE_PORT', 'TILLGATE_PRESET']) {
        expect((error as ConfigurationError).problems.filter((problem) => problem.includes(name))).toHaveLength(1);
      }
    }
  });

  it('says what is missing where no variable names the issuer', () => {
    for (const name of Object.keys(process.env)) if (name.startsWith('TILLGATE_')) delete process.env[name];
    expect(() => authenticate()).toThrow(ConfigurationError);
    expect(() => authenticate()).toThrow('TILLGATE_AUTH_URL');
  });
});

function deepFreeze<Value extends object>(value: Value): Value {
  for (const member of Object.values(value)) if (typeof member === 'object') deepFreeze(member as object);
  return Object.freeze(value);
}

const down: Fetch = () => Promise.reject(Object.assign(new TypeError('secret'), { cause: { code: 'ECONNREFUSED' } }));

/** A source whose reads are as given. */
const readBy = (next: () => Promise<never>): GenerationSource => ({
  mark: false,
  reader: () => ({ next, close() {} }),
});

describe('ready()', () => {
  it('resolves once there are keys, also where no generations are checked', async () => {
    let publish = (): void => {};
    const published = new Promise<void>((resolve) => (publish = resolve));
    const fetch: Fetch = () => published.then(() => Response.json({ keys: [testKey().jwk] }));
    const { gate } = gateApp({ jwksUri: JWKS_URI, fetch, generationClaim: false, schedule: idle });
    let isReady = false;
    const ready = gate.ready().then(() => (isReady = true));
    for (let turns = 0; turns < 5; turns++) await settle();
    expect(isReady).toBe(false);
    publish();
    await ready;
    expect(gate.status().ready).toBe(true);
    await gate.close();
  });

  it('with timeoutMs resolves where it is in time, and leaves no timer', async () => {
    const time = fakeTime(NOW_MS);
    const { gate } = gateApp({ clock: time.clock, schedule: time.schedule });
    await gate.ready({ timeoutMs: 1 });
    expect(time.pending).toBe(0);
    await gate.close();
  });

  it('with timeoutMs rejects when that is over, and names all that is not available, and why', async () => {
    const time = fakeTime(NOW_MS);
    const good = { audience: AUDIENCE, keys: KEYS };
    const failing = readBy(() => Promise.reject(new RangeError('secret')));
    const silent = readBy(() => new Promise<never>(() => {}));
    const issuers = [
      { issuer: 'https://good.test', ...good },
      { issuer: ISSUER, audience: AUDIENCE, jwksUri: JWKS_URI },
      { issuer: 'https://other.test', ...good, generationSource: failing },
      { issuer: 'https://silent.test', ...good, generationSource: silent },
    ];
    const { gate } = gateApp({ fetch: down, clock: time.clock, schedule: time.schedule, issuers });
    const outcome = gate.ready({ timeoutMs: 4_000 }).then(
      () => 'ready',
      (error: unknown) => String(error),
    );
    await time.advance(3_999);
    expect(await Promise.race([outcome, settle()])).toBeUndefined();
    await time.advance(1);
    expect(await outcome).toBe(
      'Error: the gate is not ready after 4000 ms: it has not read ' +
        `the keys of ${ISSUER} (${JWKS_URI} could not be fetched (ECONNREFUSED)) ` +
        'and the generations of https://other.test (RangeError) and the generations of https://silent.test',
    );
    await gate.close();
  });

  it('can be called again after it has rejected: the gate goes on trying', async () => {
    const time = fakeTime(NOW_MS);
    const health = { down: true };
    const fetch: Fetch = (...args) => (health.down ? down(...args) : Promise.resolve(Response.json(jwks(testKey()))));
    const { gate } = gateApp({ jwksUri: JWKS_URI, fetch, clock: time.clock, schedule: time.schedule });
    const rejected = expect(gate.ready({ timeoutMs: 10 })).rejects.toThrow('the gate is not ready after 10 ms');
    await time.advance(10);
    await rejected;
    health.down = false;
    const ready = gate.ready({ timeoutMs: 5_000 });
    await time.advance(1_000);
    await ready;
    await gate.close();
  });

  const range = 'option "timeoutMs" must be a number of milliseconds from 1 to 9007199254740991, got';
  it.each<[object, string]>([
    [{ timeoutMs: '5' }, `${range} "5"`],
    [{ timeoutMs: 0 }, `${range} 0`],
    [{ timeout: 5 }, 'unknown option "timeout"; did you mean "timeoutMs"?'],
  ])('refuses %j', async (options, message) => {
    await expect(testGate().ready(options)).rejects.toThrow(new TypeError(`ready(): ${message}`));
  });
});

describe('a generationSource that is a URL', () => {
  it('is read with the dependencies of the gate, by http: where that is allowed, and closed with the gate', async () => {
    const asked: string[] = [];
    const open = new Set<AbortSignal>();
    let unit = 0;
    const fetch: Fetch = (url, { signal }) => {
      asked.push(url);
      const mark = { epoch: 'e', unit: ++unit, complete_ms: NOW_MS + unit, kept_ms: 90_000_000 };
      const changes = unit === 1 ? [{ client_id: 'pos-17', generation: GENERATION + 1 }] : [];
      if (unit < 3) return Promise.resolve(Response.json({ position: 'p', end: true, mark, changes }));
      open.add(signal!);
      return new Promise(() => {});
    };
    const time = fakeTime(NOW_MS);
    const follows = { generationSource: 'http://log.test', allowHttp: true, fetch };
    const through = gateApp({ keys: KEYS, ...follows, clock: time.clock, schedule: time.schedule });
    await time.advance(250);
    await through.gate.ready();
    expect(asked).toEqual([
      'http://log.test/generations',
      'http://log.test/generations?after=p&wait=250',
      expect.stringMatching(/^http:\/\/log\.test\/generations\?after=p&wait=4\d{3}$/),
    ]);
    await through.get(token()).expect(401);
    await through.get(token({ claims: { generation: GENERATION + 1 } })).expect(200);
    expect([...open].map(({ aborted }) => aborted)).toEqual([false]);
    await through.gate.close();
    expect([...open].map(({ aborted }) => aborted)).toEqual([true]);
  });

  it('is closed by explain() with the gate that it has made from the variables', async () => {
    const putBack = rememberEnvironment();
    const [keys, server] = [await keyServer(testKey()), await serveLog(undefined, { clock: Date.now })];
    try {
      Object.assign(process.env, {
        TILLGATE_AUTH_URL: keys.origin,
        TILLGATE_AUDIENCE: AUDIENCE,
        TILLGATE_GENERATIONS: server.url,
      });
      const { accepted } = await explain(token({ claims: { iss: keys.origin, exp: 1 } }));
      expect(accepted).toBe(false);
      await eventually(() => server.requests.length > 0 && server.requests.every(({ destroyed }) => destroyed));
    } finally {
      putBack();
      await Promise.all([keys.stop(), server.close()]);
    }
  });
});
