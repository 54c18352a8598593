import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSettings } from '../../../src/gate/env';
import type { Environment } from '../../../src/gate/env';
import { problemsOf } from './problems-of';

const ISSUER = { TILLGATE_ISSUER: 'https://login.example.com' };
const CREDENTIAL = { TILLGATE_INTROSPECTION_CLIENT_ID: 'api', TILLGATE_INTROSPECTION_CLIENT_SECRET: 'geheim' };

describe('variables of the option scopes', () => {
  it.each<[string, unknown]>([
    ['permissions', ['permissions']],
    ['scope,realm_access.roles', ['scope', 'realm_access.roles']],
    [' scope ,  scp\troles ', ['scope', 'scp', 'roles']],
    ['["scope",["https://example.com/roles"]]', ['scope', ['https://example.com/roles']]],
  ])('TILLGATE_SCOPE_CLAIMS=%s is %j', (given, from) => {
    expect(readSettings({ TILLGATE_SCOPE_CLAIMS: given }).scopes).toEqual({ from });
  });

  it.each<[string, unknown]>([
    ['{"Store Manager":["orders:read","orders:write"]}', { 'Store Manager': ['orders:read', 'orders:write'] }],
    ['{"till":"orders:read","nobody":[]}', { till: 'orders:read', nobody: [] }],
  ])('TILLGATE_SCOPE_MAP=%s is an object', (given, map) => {
    expect(readSettings({ TILLGATE_SCOPE_MAP: given }).scopes).toEqual({ map });
  });

  it.each(['["scope",5]', '["scope"', '[]', ',', 'realm_access..roles', 'https://example.com/roles'])(
    'TILLGATE_SCOPE_CLAIMS=%s is a problem',
    (given) => {
      expect(problemsOf({ TILLGATE_SCOPE_CLAIMS: given })).toEqual([
        `TILLGATE_SCOPE_CLAIMS: got ${JSON.stringify(given)}, expected claims between commas or blanks, such as permissions or realm_access.roles; if a name contains dots itself, JSON: ["scope",["https://example.com/roles"]]; for example TILLGATE_SCOPE_CLAIMS=scope,realm_access.roles`,
      ]);
    },
  );

  it.each([
    ...['till=orders:read', '{}', '["till"]', 'null', '{"till":"a b"}', '{"till":true}', '{"till":{"0":"a"}}'],
    '{"till":"a","till":"b"}',
  ])('TILLGATE_SCOPE_MAP=%s is a problem', (given) => {
    expect(problemsOf({ TILLGATE_SCOPE_MAP: given })).toEqual([
      `TILLGATE_SCOPE_MAP: got ${JSON.stringify(given)}, expected a JSON object with the scope, or an array of the scopes, that each name grants; for example TILLGATE_SCOPE_MAP='{"till":["orders:read","orders:write"]}'`,
    ]);
  });
});

describe('variables of the option opaque', () => {
  it('are an id and a secret', () => {
    const env = {
      TILLGATE_INTROSPECTION_CLIENT_ID: 'orders api',
      TILLGATE_INTROSPECTION_CLIENT_SECRET: 'a b: %\u00f6',
    };
    expect(readSettings(env).opaque).toEqual({ clientId: 'orders api', clientSecret: 'a b: %\u00f6' });
  });

  it('can have a URL of the endpoint', () => {
    const url = 'https://login.example.com/introspect?tenant=1';
    const { opaque } = readSettings({ ...ISSUER, ...CREDENTIAL, TILLGATE_INTROSPECTION_URL: url });
    expect(opaque).toEqual({ url, clientId: 'api', clientSecret: 'geheim' });
  });

  const [ID, SECRET] = ['TILLGATE_INTROSPECTION_CLIENT_ID', 'TILLGATE_INTROSPECTION_CLIENT_SECRET'];
  const URL = 'TILLGATE_INTROSPECTION_URL';
  const ENDPOINT = 'https://login.example.com/introspect';
  const lacks = (name: string, other: string): string =>
    `${name}: not set, but needed with ${other}; set it, or remove the other`;
  const HTTPS = 'expected https:// (http:// is for loopback hosts); use https:// or set TILLGATE_ALLOW_HTTP=on';
  const NO_BREAKS = 'expected a client secret without line breaks or other control characters';
  const NO_CREDENTIALS = 'expected an absolute http://, https:// URL without credentials or fragment';

  it.each<[Environment, ...problems: string[]]>([
    [{ [ID]: 'orders-api' }, lacks(SECRET, ID)],
    [{ [SECRET]: 'geheim' }, lacks(ID, SECRET)],
    [{ ...ISSUER, [URL]: ENDPOINT }, lacks(ID, URL), lacks(SECRET, URL)],
    [
      { ...CREDENTIAL, [SECRET]: 'geheim\n' },
      `${SECRET}: got 7 characters (not shown), ${NO_BREAKS}; for example ${SECRET}="$(cat secret-file)"`,
    ],
    [
      { ...CREDENTIAL, [URL]: ENDPOINT },
      `${URL}: set without an issuer; set TILLGATE_ISSUER to exactly the iss of its tokens`,
    ],
    [
      { ...ISSUER, ...CREDENTIAL, [URL]: 'http://login.example.com/introspect?key=geheim' },
      `${URL}: got "http://login.example.com/introspect?...", ${HTTPS}`,
    ],
    [
      { ...ISSUER, ...CREDENTIAL, [URL]: 'https://api:geheim@login.example.com/introspect' },
      `${URL}: got "https://***@login.example.com/introspect", ${NO_CREDENTIALS}; for example ${URL}=https://login.example.com/connect/introspect`,
    ],
  ])('%j is a problem that does not show the secret', (env, ...problems) => {
    expect(problemsOf(env)).toEqual(problems);
    expect(problems.join()).not.toContain('geheim');
  });
});

it('what the variables of both options hold is frozen', () => {
  const { scopes, opaque } = readSettings({
    ...CREDENTIAL,
    TILLGATE_SCOPE_CLAIMS: '[["a"]]',
    TILLGATE_SCOPE_MAP: '{"till":["orders:read"]}',
  });
  for (const part of [scopes, opaque]) expect(Object.isFrozen(part)).toBe(true);
  expect(() => (scopes?.map as Record<string, string[]>)['till']?.push('orders:write')).toThrow(TypeError);
  expect(() => (scopes?.from as string[][])[0]?.push('b')).toThrow(TypeError);
});

describe('a secret in a file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tillgate-secrets-'));
  afterAll(() => rmSync(directory, { recursive: true }));
  const fileWith = (text: string): string => {
    const path = join(directory, 'secret');
    writeFileSync(path, text);
    return path;
  };

  it.each([
    ['TILLGATE_ADMIN_TOKEN_FILE', 'adminToken', 'sixteen-or-more-letters'],
    ['TILLGATE_GENERATIONS_FILE', 'generationSource', 'rediss://user:geheim@redis.example.com'],
  ] as const)('%s is read without the line break at its end', (name, setting, value) => {
    for (const end of ['', '\n', '\r\n']) {
      expect(readSettings({ [name]: fileWith(value + end) })[setting]).toBe(value);
    }
  });

  it('is half of a credential: the client id is in a variable', () => {
    const env = {
      TILLGATE_AUTH_URL: 'https://login.example.com',
      TILLGATE_INTROSPECTION_CLIENT_ID: 'orders-api',
      TILLGATE_INTROSPECTION_CLIENT_SECRET_FILE: fileWith('geheim\n'),
    };
    expect(readSettings(env).opaque?.clientSecret).toBe('geheim');
  });

  it('is a problem where the file is missing or empty, its text is wrong, or the variable is set too; none shows it', () => {
    const missing = { TILLGATE_ADMIN_TOKEN_FILE: join(directory, 'missing') };
    expect(problemsOf(missing)).toEqual([
      expect.stringMatching(
        /^TILLGATE_ADMIN_TOKEN_FILE: ".*missing" cannot be read \(Error \(ENOENT\)\), expected a file with the value$/,
      ),
    ]);
    for (const end of ['', '\n', '\r\n']) {
      const empty = fileWith(end);
      expect(problemsOf({ TILLGATE_ADMIN_TOKEN_FILE: empty })).toEqual([
        `TILLGATE_ADMIN_TOKEN_FILE: "${empty}" is empty, expected a file with the value`,
      ]);
    }
    expect(problemsOf({ TILLGATE_ADMIN_TOKEN_FILE: fileWith('geheim') })).toEqual([
      expect.stringMatching(/^TILLGATE_ADMIN_TOKEN: got 6 characters \(not shown\), expected at least 16/),
    ]);
    const both = { TILLGATE_ADMIN_TOKEN_FILE: fileWith('geheim'), TILLGATE_ADMIN_TOKEN: 'sixteen-or-more-letters' };
    expect(problemsOf(both)).toEqual([
      'TILLGATE_ADMIN_TOKEN_FILE: set together with TILLGATE_ADMIN_TOKEN; remove one of the two',
    ]);
  });

  it('is for secrets only', () => {
    expect(problemsOf({ TILLGATE_PORT_FILE: fileWith('3000') })).toEqual([
      'TILLGATE_PORT_FILE: unknown variable; did you mean "TILLGATE_PORT"?',
    ]);
  });
});
