import { authenticateOptions, MISSING_ISSUER, readSettings } from '../../src/settings/settings';
import type { Settings } from '../../src/settings/settings';
import { TABLE } from '../../src/settings/variables';

/** A value of each variable that is not its default, and what it is read as. */
const VALUES: { readonly [Key in keyof typeof TABLE]: readonly [given: string, value: unknown] } = {
  host: ['::1', '::1'],
  port: ['3001', 3001],
  baseUrl: ['https://api.example.com', 'https://api.example.com'],
  authUrl: ['https://login.example.com', 'https://login.example.com'],
  issuer: ['https://tenant.example.com', 'https://tenant.example.com'],
  audience: ['commerce', 'commerce'],
  jwksUri: ['https://keys.example.com/jwks', 'https://keys.example.com/jwks'],
  preset: ['identityserver', 'identityserver'],
  scopeClaims: ['permissions', ['permissions']],
  scopeMap: ['{"till":"orders:read"}', { till: 'orders:read' }],
  introspectionClientId: ['orders-api', 'orders-api'],
  introspectionClientSecret: ['geheim', 'geheim'],
  introspectionUrl: ['https://login.example.com/introspect', 'https://login.example.com/introspect'],
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
  adminPort: ['9091', 9091],
  adminToken: ['sixteen-or-more-letters', 'sixteen-or-more-letters'],
  rateLimit: ['7/s', { limit: 7, windowMs: 1_000 }],
  tokenRateLimit: ['8/h', { limit: 8, windowMs: 3_600_000 }],
  allowHttp: ['on', true],
  logLevel: ['debug', 'debug'],
};

const KEYS = Object.keys(TABLE) as (keyof typeof TABLE)[];
const settings = readSettings(Object.fromEntries(KEYS.map((key) => [TABLE[key].name, VALUES[key][0]])));

it('every variable sets its setting', () => {
  const grouped = /^(scope|introspection)[A-Z]/;
  for (const key of KEYS.filter((name) => !grouped.test(name))) {
    expect([key, settings[key as keyof Settings]]).toEqual([key, VALUES[key][1]]);
  }
  expect(settings.scopes).toEqual({ from: VALUES.scopeClaims[1], map: VALUES.scopeMap[1] });
  expect(settings.introspection).toEqual({
    url: VALUES.introspectionUrl[1],
    clientId: VALUES.introspectionClientId[1],
    clientSecret: VALUES.introspectionClientSecret[1],
  });
});

it('every setting of the gate becomes its option', () => {
  expect(authenticateOptions(settings)).toEqual({
    issuer: 'https://tenant.example.com',
    authUrl: 'https://login.example.com',
    audience: 'commerce',
    jwksUri: 'https://keys.example.com/jwks',
    preset: 'identityserver',
    scopes: { from: ['permissions'], map: { till: 'orders:read' } },
    introspection: settings.introspection,
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
