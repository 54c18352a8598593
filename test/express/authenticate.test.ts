import { authenticate, ConfigurationError } from '../../src';
import { gateApp } from '../support/gate-app';
import { AUDIENCE, ISSUER, token } from '../support/issuer';
import { jwks, testKey } from '../support/keys';

const KEYS = jwks(testKey());
const good = { issuer: ISSUER, audience: AUDIENCE, keys: KEYS };

describe('authenticate(): good options', () => {
  it('leaves them alone: frozen ones work, and stay as they were', async () => {
    const options = deepFreeze({
      ...good,
      algorithms: ['ES256'],
      audience: [AUDIENCE],
      generationClaim: 'generation',
    } as const);
    const before = JSON.stringify(options);
    await gateApp(options).get(token()).expect(200);
    expect(JSON.stringify(options)).toBe(before);
  });

  it('does not follow options that are changed afterwards', async () => {
    const audience = [AUDIENCE];
    const through = gateApp({ audience });
    audience[0] = 'other';
    await through.get(token()).expect(200);
  });

  it('takes undefined for left out', async () => {
    await gateApp({
      authUrl: undefined,
      preset: undefined,
      realm: undefined,
      maxStalenessMs: undefined,
      fetch: undefined,
      keys: KEYS,
    })
      .get(token())
      .expect(200);
  });

  it('takes an issuer that is not an address where keys are given', async () => {
    await gateApp({ issuer: 'till-17' })
      .get(token({ claims: { iss: 'till-17' } }))
      .expect(200);
  });

  it('takes http: with allowHttp, and on loopback without', async () => {
    const fetch = (): Promise<Response> => Promise.reject(new Error('down'));
    const schedule = () => ({ cancel() {} });
    const logger = { info() {}, warn() {}, error() {} };
    for (const options of [{ issuer: 'http://login.test', allowHttp: true }, { issuer: 'http://localhost:4000' }]) {
      await authenticate({ ...options, audience: AUDIENCE, fetch, schedule, logger }).close();
    }
  });

  it.each([
    [0, 4],
    [1, 2],
  ])(
    'verifies a token twice before it is remembered; with verifiedTokens: %d, 4 requests %d times',
    async (max, times) => {
      const through = gateApp({ verifiedTokens: max });
      const raw = token();
      for (let index = 0; index < 4; index++) await through.get(raw).expect(200);
      expect(new Set(through.decisions.map(({ auth }) => auth)).size).toBe(times);
    },
  );

  it('is a function named authenticate with ready, status and close', async () => {
    const { gate } = gateApp();
    expect(gate.name).toBe('authenticate');
    await gate.ready();
    expect(gate.status()).toEqual({
      ready: true,
      issuers: [
        {
          issuer: ISSUER,
          keys: { state: 'fresh', keys: 1 },
          generations: { source: 'none', floors: 0, reads: 0, failures: 0 },
        },
      ],
    });
    await gate.close();
  });
});

describe('authenticate() without options', () => {
  const before = { ...process.env };
  afterEach(() => void (process.env = { ...before }));

  it('reads the TILLGATE_* variables, and says all that is wrong with them', () => {
    process.env['TILLGATE_PORT'] = 'abc';
    process.env['TILLGATE_PRESET'] = 'azure';
    const caught = catchFrom(() => authenticate());
    expect(caught).toBeInstanceOf(ConfigurationError);
    const { problems } = caught as ConfigurationError;
    for (const name of ['TILLGATE_PORT', 'TILLGATE_PRESET']) {
      expect(problems.filter((problem) => problem.includes(name))).toHaveLength(1);
    }
  });

  it('says what is missing where no variable names the issuer', () => {
    for (const name of Object.keys(process.env)) if (name.startsWith('TILLGATE_')) delete process.env[name];
    const caught = catchFrom(() => authenticate());
    expect(caught).toBeInstanceOf(ConfigurationError);
    expect((caught as ConfigurationError).message).toContain('TILLGATE_AUTH_URL');
  });
});

function catchFrom(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

function deepFreeze<Value extends object>(value: Value): Value {
  Object.values(value).forEach(
    (member) => typeof member === 'object' && member !== null && deepFreeze(member as object),
  );
  return Object.freeze(value);
}
