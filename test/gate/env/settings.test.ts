import { once } from 'node:events';
import { authenticateOptions, readSettings } from '../../../src/gate/env';
import type { Environment } from '../../../src/gate/env';
import { MISSING_ISSUER } from '../../../src/gate/env/read-settings';
import { problemsOf } from './problems-of';
import { VARIABLES } from '../../../src/gate/env/variables';

const INTROSPECTION: Environment = {
  TILLGATE_ISSUER: 'https://login.test',
  TILLGATE_INTROSPECTION_CLIENT_ID: 'api',
  TILLGATE_INTROSPECTION_CLIENT_SECRET: 'geheim',
};

describe('readSettings', () => {
  it('has a default for everything that the scaffold needs to start', () => {
    expect(readSettings({})).toEqual({
      host: '127.0.0.1',
      port: 3000,
      baseUrl: 'http://127.0.0.1:3000',
      authUrl: undefined,
      issuer: undefined,
      audience: 'http://127.0.0.1:3000',
      jwksUri: undefined,
      scopes: undefined,
      opaque: undefined,
      generationClaim: undefined,
      generationSource: undefined,
      maxStalenessMs: 60_000,
      maxSilenceMs: 900_000,
      onStale: 'reject',
      keysMaxAgeMs: 600_000,
      keysStaleMs: 3_600_000,
      clockToleranceSeconds: 10,
      maxTokenAgeSeconds: 86_400,
      authPort: 4000,
      dataDir: '.tillgate',
      adminToken: undefined,
      rateLimit: { limit: 6000, windowMs: 60_000 },
      tokenRateLimit: { limit: 60, windowMs: 60_000 },
      allowHttp: false,
      trustProxy: false,
      logLevel: 'info',
      production: false,
    });
  });

  it('is frozen, limits included', () => {
    const settings = readSettings({});
    for (const each of [settings, settings.rateLimit]) expect(Object.isFrozen(each)).toBe(true);
  });

  it('takes the issuer from TILLGATE_AUTH_URL and the audience from TILLGATE_BASE_URL, where they are not set', () => {
    const urls = { TILLGATE_AUTH_URL: 'https://tenant.test/', TILLGATE_BASE_URL: 'https://api.test/' };
    expect(readSettings(urls)).toMatchObject({ issuer: 'https://tenant.test/', audience: 'https://api.test/' });
    const own = { TILLGATE_ISSUER: 'https://login.test/', TILLGATE_AUDIENCE: 'commerce' };
    expect(readSettings({ ...urls, ...own })).toMatchObject({ issuer: 'https://login.test/', audience: 'commerce' });
  });

  it.each([
    [{ TILLGATE_HOST: '::1', TILLGATE_PORT: '8080' }, 'http://[::1]:8080'],
    [{ TILLGATE_HOST: 'localhost' }, 'http://localhost:3000'],
    [{ TILLGATE_HOST: '0.0.0.0', TILLGATE_BASE_URL: 'https://api.example.com/shop' }, 'https://api.example.com/shop'],
  ])('%j gives the base URL %s', (env, baseUrl) => {
    expect(readSettings(env).baseUrl).toBe(baseUrl);
  });

  describe.each([
    ['0.0.0.0', '127.0.0.1'],
    ['0', '127.0.0.1'],
    ['::', '[::1]'],
    ['::0', '[::1]'],
    ['0:0:0:0:0:0:0:0', '[::1]'],
    ['::ffff:0.0.0.0', '127.0.0.1'],
  ])('TILLGATE_HOST=%s, an address to listen on,', (host, called) => {
    it('is never the audience or the resource: loopback takes its place, with a warning', async () => {
      const warned = once(process, 'warning') as Promise<[Error]>;
      const settings = readSettings({ TILLGATE_HOST: host, TILLGATE_ISSUER: 'https://login.test' });
      const url = `http://${called}:3000`;
      expect(settings).toMatchObject({ host, baseUrl: url, audience: url });
      expect(authenticateOptions(settings)).toMatchObject({ resource: url, audience: url });
      const [{ name, message }] = await warned;
      expect([name, message]).toEqual([
        'TillgateWarning',
        `TILLGATE_BASE_URL: not set, and TILLGATE_HOST is an address to listen on, which nobody can call, got "${host}"; ${url} takes its place`,
      ]);
    });

    it('needs TILLGATE_BASE_URL in production', () => {
      const env = { TILLGATE_HOST: host, TILLGATE_AUDIENCE: 'shop', NODE_ENV: 'production' };
      expect(problemsOf(env)).toEqual([
        `TILLGATE_BASE_URL: not set, and TILLGATE_HOST is an address to listen on, which nobody can call, got "${host}"; set it to the public URL of the API, for example TILLGATE_BASE_URL=https://api.example.com`,
      ]);
      const baseUrl = 'https://api.example.com';
      expect(readSettings({ ...env, TILLGATE_BASE_URL: baseUrl })).toMatchObject({ baseUrl, audience: 'shop' });
    });
  });

  it.each<[Environment, object]>([
    [{ TILLGATE_RATE_LIMIT: '10/s' }, { rateLimit: { limit: 10, windowMs: 1_000 } }],
    [{ TILLGATE_RATE_LIMIT: '100000/h' }, { rateLimit: { limit: 100_000, windowMs: 3_600_000 } }],
    [{ TILLGATE_RATE_LIMIT: 'off' }, { rateLimit: undefined }],
    [{ TILLGATE_TOKEN_RATE_LIMIT: 'off' }, { tokenRateLimit: undefined }],
    [{ TILLGATE_GENERATION_CLAIM: 'off' }, { generationClaim: false }],
    [{ TILLGATE_GENERATION_CLAIM: 'iat' }, { generationClaim: 'iat' }],
    [{ ...INTROSPECTION, TILLGATE_KEYS: 'none' }, { keys: [] }],
    [{ TILLGATE_GENERATION_CLAIM: 'ext.generation' }, { generationClaim: 'ext.generation' }],
    [{ TILLGATE_GENERATION_CLAIM: '["ext","a.b"]' }, { generationClaim: ['ext', 'a.b'] }],
    [{ TILLGATE_GENERATIONS: 'off' }, { generationSource: undefined }],
    [{ TILLGATE_GENERATIONS: 'http://127.0.0.1:4000' }, { generationSource: 'http://127.0.0.1:4000' }],
    [{ TILLGATE_GENERATIONS: 'redis://:pass@cache:6379/0' }, { generationSource: 'redis://:pass@cache:6379/0' }],
    [{ TILLGATE_GENERATIONS: 'postgres://u@db/x?ssl=1' }, { generationSource: 'postgres://u@db/x?ssl=1' }],
    [{ TILLGATE_KEYS_STALE_MS: '0' }, { keysStaleMs: 0 }],
    [{ TILLGATE_TRUST_PROXY: '1' }, { trustProxy: 1 }],
    [{ TILLGATE_TRUST_PROXY: '127.0.0.1,fd00::/8' }, { trustProxy: ['127.0.0.1', 'fd00::/8'] }],
    [{ TILLGATE_TRUST_PROXY: 'off' }, { trustProxy: false }],
    [
      { TILLGATE_ALLOW_HTTP: '1', TILLGATE_ISSUER: 'http://a' },
      { allowHttp: true, issuer: 'http://a' },
    ],
    [{ TILLGATE_ALLOW_HTTP: 'True' }, { allowHttp: true }],
    [{ TILLGATE_ALLOW_HTTP: '0' }, { allowHttp: false }],
    [{ TILLGATE_AUTH_URL: 'http://localhost:4000' }, { authUrl: 'http://localhost:4000' }],
    [{ TILLGATE_AUTH_URL: 'http://[::1]:4000' }, { authUrl: 'http://[::1]:4000' }],
    [{ TILLGATE_PORT: '4000', TILLGATE_AUTH_URL: 'https://login.example.com' }, { port: 4000 }],
    [{ NODE_ENV: 'production' }, { production: true }],
    [{ NODE_ENV: '' }, { production: false }],
    [{ OTHER_NAME: 'x', MY_TILLGATE_PORT: '1', TILLGATE: '1' }, { port: 3000 }],
  ])('reads %j', (env, expected) => {
    expect(readSettings(env)).toMatchObject(expected);
  });
});

describe('wrong settings', () => {
  const WEB = 'an absolute http://, https:// URL without credentials or query or fragment';
  const HTTPS = 'expected https:// (http:// is for loopback hosts); use https:// or set TILLGATE_ALLOW_HTTP=on';

  const PORT = 'a port number from 0 to 65535';
  const PROXIES = 'a number of proxies from 1 to 100, or IP addresses and subnets between commas or blanks, or off';

  it.each<readonly [name: string, given: string, expected: string, example: string]>([
    ['TILLGATE_PORT', '99999', PORT, '3000'],
    ['TILLGATE_PORT', '0x50', PORT, '3000'],
    ['TILLGATE_HOST', 'http://x', 'a host name or an IP address', '127.0.0.1'],
    ['TILLGATE_AUDIENCE', 'a b', 'an audience without white space', 'https://api.example.com'],
    ['TILLGATE_ON_STALE', 'ignore', 'one of reject, accept', 'reject'],
    ['TILLGATE_MAX_STALENESS_MS', '1e4', 'a whole number of milliseconds from 1 to 86400000', '60000'],
    ['TILLGATE_CLOCK_TOLERANCE_SECONDS', '-1', 'a whole number of seconds from 0 to 300', '10'],
    ['TILLGATE_RATE_LIMIT', '0/m', 'a number of requests per s, m or h, or off', '6000/m'],
    ...['0', '101', '1.5', 'on', '10.0.0.0/33', '::/129', '10.0.0.1/8/8', ','].map(
      (given) => ['TILLGATE_TRUST_PROXY', given, PROXIES, '10.0.0.0/8'] as const,
    ),
    ['TILLGATE_ALLOW_HTTP', 'yes', 'on or off', 'on'],
    ['TILLGATE_ALLOW_HTTP', 'constructor', 'on or off', 'on'],
  ])('%s=%s: says what is expected, and an example', (name, given, expected, example) => {
    const problem = `${name}: got "${given}", expected ${expected}; for example ${name}=${example}`;
    expect(problemsOf({ [name]: given })).toEqual([problem]);
  });

  it.each<readonly [env: Environment, expected: string]>([
    [
      { TILLGATE_AUDIENCE: 'https://a.test,https://b.test' },
      `write a list as JSON: TILLGATE_AUDIENCE='["https://a.test","https://b.test"]'`,
    ],
    [{ TILLGATE_AUDIENCE: 'a; b' }, `write a list as JSON: TILLGATE_AUDIENCE='["a","b"]'`],
    [{ TILLGATE_AUDIENCE: '"a,b"' }, `write a list as JSON: TILLGATE_AUDIENCE='["a","b"]'`],
    [{ TILLGATE_AUDIENCE: '\'["a","b"]\'' }, 'write TILLGATE_AUDIENCE=["a","b"]'],
    [{ TILLGATE_AUDIENCE: "['a', 'b']" }, `write a list as JSON: TILLGATE_AUDIENCE='["a","b"]'`],
    [{ TILLGATE_AUDIENCE: '[]' }, 'for example TILLGATE_AUDIENCE=https://api.example.com'],
    [{ TILLGATE_AUDIENCE: '["a",7]' }, `write a list as JSON: TILLGATE_AUDIENCE='["a","7"]'`],
    [{ TILLGATE_AUDIENCE: '"commerce"' }, 'without quotation marks around it; write TILLGATE_AUDIENCE=commerce'],
    [{ TILLGATE_GENERATION_CLAIM: 'generation,iat' }, 'the name of a claim, or off'],
    [{ TILLGATE_KEYS: 'off' }, 'expected none'],
    [{ TILLGATE_GENERATION_CLAIM: 'ext..generation' }, 'the name of a claim, or off'],
    [{ TILLGATE_GENERATION_CLAIM: '["ext",1]' }, 'the name of a claim, or off'],
    [{ TILLGATE_GENERATION_CLAIM: '"iat"' }, 'without quotation marks around it; write TILLGATE_GENERATION_CLAIM=iat'],
    [{ TILLGATE_SCOPE_CLAIMS: "'scp'" }, 'without quotation marks around it; write TILLGATE_SCOPE_CLAIMS=scp'],
    [{ TILLGATE_DATA_DIR: '"data"' }, 'without quotation marks around it; write TILLGATE_DATA_DIR=data'],
    [{ TILLGATE_PORT: '"80"' }, 'without quotation marks around it; write TILLGATE_PORT=80'],
    [{ TILLGATE_ISSUER: '"https://login.test"' }, 'without quotation marks around it'],
  ])('%j is refused with the right form', (env, expected) => {
    expect(problemsOf(env)).toEqual([expect.stringContaining(expected)]);
  });

  it('several audiences are a JSON list', () => {
    expect(readSettings({ TILLGATE_AUDIENCE: '["https://a.test","b,c"]' }).audience).toEqual(['https://a.test', 'b,c']);
  });

  it('a secret may begin and end with quotation marks', () => {
    const opaque = { TILLGATE_INTROSPECTION_CLIENT_ID: 'api', TILLGATE_INTROSPECTION_CLIENT_SECRET: '"s,e"' };
    const settings = readSettings({ TILLGATE_ISSUER: 'https://login.test', ...opaque });
    expect(settings.opaque?.clientSecret).toBe('"s,e"');
  });

  const SOURCE = 'https://login.example.com/generations';
  it.each<[Environment, name: string, problem: string]>([
    [
      { TILLGATE_ON_STALE: '' },
      'TILLGATE_ON_STALE',
      'set but empty, expected one of reject, accept; remove it or give a value, for example TILLGATE_ON_STALE=reject',
    ],
    [{ TILLGATE_ISUER: 'x' }, 'TILLGATE_ISUER', 'unknown variable; did you mean "TILLGATE_ISSUER"?'],
    [{ TILLGATE_AUTH_URL: 'http://a.test' }, 'TILLGATE_AUTH_URL', `got "http://a.test", ${HTTPS}`],
    [{ TILLGATE_GENERATIONS: 'http://10.0.0.5/g' }, 'TILLGATE_GENERATIONS', `got "http://10.0.0.5/g", ${HTTPS}`],
    [
      { TILLGATE_JWKS_URI: 'https://login.example.com/jwks' },
      'TILLGATE_JWKS_URI',
      'set without an issuer; set TILLGATE_ISSUER to exactly the iss of its tokens',
    ],
    [
      { ...INTROSPECTION, TILLGATE_KEYS: 'none', TILLGATE_JWKS_URI: 'https://login.test/jwks' },
      'TILLGATE_KEYS',
      'set together with TILLGATE_JWKS_URI; remove one of the two',
    ],
    [
      { TILLGATE_ISSUER: 'https://login.test', TILLGATE_KEYS: 'none' },
      'TILLGATE_KEYS',
      'got "none" without TILLGATE_INTROSPECTION_CLIENT_ID, so no token could be accepted; set it with its secret, or remove TILLGATE_KEYS',
    ],
    [
      { TILLGATE_GENERATIONS: SOURCE, TILLGATE_GENERATION_CLAIM: 'off' },
      'TILLGATE_GENERATIONS',
      'set while TILLGATE_GENERATION_CLAIM=off checks no generation; remove one of the two',
    ],
    [
      { TILLGATE_PORT: '4000' },
      'TILLGATE_AUTH_PORT',
      'got 4000, which is also the port of TILLGATE_PORT; give each its own',
    ],
  ])('%j is one problem', (env, name, problem) => {
    expect(problemsOf(env)).toEqual([`${name}: ${problem}`]);
  });

  it.each([
    'login.example.com',
    ' https://login.example.com',
    'https://login.example.com ',
    'https:/login.example.com',
    'https:\\\\login.example.com',
    'https://',
    'ftp://login.example.com',
    'HTTPS://login.example.com',
    'https://login.example.com/#a',
    'https://login.example.com/?a=b',
    'https://login.example.com/\nx',
  ])('refuses %j as an issuer', (issuer) => {
    const expected = `expected ${WEB}; for example TILLGATE_ISSUER=https://login.example.com$`;
    const problem = expect.stringMatching(new RegExp(`^TILLGATE_ISSUER: got ".*${expected}`));
    expect(problemsOf({ TILLGATE_ISSUER: issuer })).toEqual([problem]);
  });

  it('reports all problems together, one per line', () => {
    const issuer = { TILLGATE_ISSUER: 'http://login.example.com', TILLGATE_PRESET: 'duende' };
    const env = { TILLGATE_PRT: '1', TILLGATE_PORT: 'x', ...issuer, TILLGATE_LOG_LEVEL: 'loud' };
    const names = ['TILLGATE_PRT', 'TILLGATE_PORT', 'TILLGATE_PRESET', 'TILLGATE_LOG_LEVEL', 'TILLGATE_ISSUER'];
    expect(problemsOf(env).map((problem) => problem.split(':')[0])).toEqual(names);
    const lines = names.map((name) => `\n {2}- ${name}: .*`);
    expect(() => readSettings(env)).toThrow(new RegExp(`^wrong configuration:${lines.join('')}$`));
  });

  it.each<Environment>([
    { TILLGATE_ADMIN_TOKEN: 'geheim' },
    { TILLGATE_ADMIN_TOKEN: 'geheim geheim geheim' },
    { TILLGATE_ADMIN_TOKENS: 'geheim-geheim-geheim' },
    { TILLGATE_GENERATIONS: 'redis://user:geheim@cache:6379/x y' },
    { TILLGATE_GENERATIONS: 'redis://:a#geheim@cache' },
    { TILLGATE_GENERATIONS: 'user:geheim@cache' },
    { TILLGATE_GENERATIONS: 'mysql://db/x?password=geheim' },
    { TILLGATE_GENERATIONS: 'http://cache/x?token=geheim' },
    { TILLGATE_GENERATIONS: 'http://id:geheim@cache/x' },
    { TILLGATE_ISSUER: 'https://user:geheim@login.example.com' },
  ])('never shows the secret in %j', (env) => {
    const problems = problemsOf(env);
    expect(problems).toHaveLength(1);
    expect(problems.join()).not.toContain('geheim');
  });
});

it.each([
  ['tillgate_port', 'TILLGATE_PORT'],
  ['Tillgate_Issuer', 'TILLGATE_ISSUER'],
  ['TILLGATE_on_stale', 'TILLGATE_ON_STALE'],
  ['tILLGATE_GENERATIONS', 'TILLGATE_GENERATIONS'],
])('%s is a problem, not ignored: did you mean %s?', (name, meant) => {
  expect(problemsOf({ [name]: 'x' })).toEqual([`${name}: unknown variable; did you mean "${meant}"?`]);
});

describe('authenticate()', () => {
  /** A value of each variable that is not its default, and what it is read as. */
  const VALUES: Readonly<Record<string, readonly [given: string, value: unknown]>> = {
    host: ['::1', '::1'],
    port: ['3001', 3001],
    baseUrl: ['https://api.example.com', 'https://api.example.com'],
    authUrl: ['https://login.example.com', 'https://login.example.com'],
    issuer: ['https://tenant.example.com', 'https://tenant.example.com'],
    audience: ['commerce', 'commerce'],
    jwksUri: ['https://keys.example.com/jwks', 'https://keys.example.com/jwks'],
    preset: ['identityserver', 'identityserver'],
    'scopes.from': ['permissions', ['permissions']],
    'scopes.map': ['{"till":"orders:read"}', { till: 'orders:read' }],
    'opaque.clientId': ['orders-api', 'orders-api'],
    'opaque.clientSecret': ['geheim', 'geheim'],
    'opaque.url': ['https://login.example.com/introspect', 'https://login.example.com/introspect'],
    generationClaim: ['epoch', 'epoch'],
    generationSource: ['https://login.example.com/generations', 'https://login.example.com/generations'],
    maxStalenessMs: ['61001', 61_001],
    maxSilenceMs: ['61005', 61_005],
    onStale: ['accept', 'accept'],
    keysMaxAgeMs: ['61002', 61_002],
    keysStaleMs: ['61003', 61_003],
    clockToleranceSeconds: ['11', 11],
    maxTokenAgeSeconds: ['61004', 61_004],
    authPort: ['4001', 4001],
    dataDir: ['elsewhere', 'elsewhere'],
    adminToken: ['sixteen-or-more-letters', 'sixteen-or-more-letters'],
    corsOrigins: ['https://a.test, http://b.test:8080', ['https://a.test', 'http://b.test:8080']],
    rateLimit: ['7/s', { limit: 7, windowMs: 1_000 }],
    tokenRateLimit: ['8/h', { limit: 8, windowMs: 3_600_000 }],
    allowHttp: ['on', true],
    trustProxy: ['10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']],
    logLevel: ['debug', 'debug'],
  };

  const settings = readSettings(Object.fromEntries(VARIABLES.map(({ name, sets }) => [name, VALUES[sets]?.[0]])));

  it('every variable sets its setting', () => {
    const set = VARIABLES.map(({ sets }): [string, unknown] => [
      sets,
      sets.split('.').reduce<unknown>((at, name) => Reflect.get(at as object, name), settings),
    ]);
    expect(Object.fromEntries(set)).toEqual(
      Object.fromEntries(Object.entries(VALUES).map(([name, [, value]]) => [name, value])),
    );
  });

  it('every setting of the gate becomes its option', () => {
    expect(authenticateOptions(settings)).toEqual({
      issuer: 'https://tenant.example.com',
      authUrl: 'https://login.example.com',
      audience: 'commerce',
      jwksUri: 'https://keys.example.com/jwks',
      preset: 'identityserver',
      scopes: { from: ['permissions'], map: { till: 'orders:read' } },
      opaque: settings.opaque,
      generationClaim: 'epoch',
      generationSource: 'https://login.example.com/generations',
      maxStalenessMs: 61_001,
      maxSilenceMs: 61_005,
      onStale: 'accept',
      keysMaxAgeMs: 61_002,
      keysStaleMs: 61_003,
      clockToleranceSeconds: 11,
      maxTokenAgeSeconds: 61_004,
      resource: 'https://api.example.com',
      allowHttp: true,
      exposeReasons: true,
    });
  });

  it('the authorization server is the issuer where TILLGATE_AUTH_URL is not set; production exposes no reasons', () => {
    const { issuer, authUrl, exposeReasons } = authenticateOptions(
      readSettings({ TILLGATE_ISSUER: 'https://tenant.example.com', NODE_ENV: 'production' }),
    );
    expect({ issuer, authUrl, exposeReasons }).toEqual({
      issuer: 'https://tenant.example.com',
      authUrl: 'https://tenant.example.com',
      exposeReasons: false,
    });
    expect(() => authenticateOptions(readSettings({}))).toThrow(MISSING_ISSUER);
  });
});
