import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import { authenticate, AuthError, ConfigurationError, requireScope } from '../../../src/gate';
import type { AuthenticateOptions } from '../../../src/gate';
import { authenticateOptions, readSettings } from '../../../src/gate/env';
import { besideVariables } from '../../../src/gate/env/gate-options';
import { memoryGenerations } from '../../../src/gate/generation';
import { rememberEnvironment } from '../../support/environment';
import { getFrom } from '../../support/gate-app';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

const restore = rememberEnvironment();
const ALL = {
  TILLGATE_ISSUER: ISSUER,
  TILLGATE_AUTH_URL: 'https://login.test/internal',
  TILLGATE_AUDIENCE: AUDIENCE,
  TILLGATE_BASE_URL: 'https://base.test',
  TILLGATE_PRESET: 'hydra',
  TILLGATE_GENERATION_CLAIM: 'epoch',
  TILLGATE_GENERATIONS: 'https://login.test/generations',
  TILLGATE_SCOPE_CLAIMS: 'scope,roles',
  TILLGATE_SCOPE_MAP: '{"till":"orders:read"}',
  TILLGATE_INTROSPECTION_URL: 'https://login.test/introspect',
  TILLGATE_INTROSPECTION_CLIENT_ID: 'api',
  TILLGATE_INTROSPECTION_CLIENT_SECRET: 'secret',
  TILLGATE_MAX_TOKEN_AGE_SECONDS: '600',
};

function set(variables: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(process.env)) if (name.startsWith('TILLGATE_')) delete process.env[name];
  Object.assign(process.env, variables);
}

beforeEach(() => set(ALL));
afterEach(restore);

/** What the gate gets. */
const beside = (options: object): Record<string, unknown> => ({ ...besideVariables(options) });
/** What the variables say alone. */
const alone = (): Record<string, unknown> => ({ ...authenticateOptions(readSettings()) });

describe('options without an issuer', () => {
  it('are added to what the variables say', () => {
    const logger = recordingLogger();
    expect(beside({})).toEqual(alone());
    expect(beside({ refusals: 'next', logger })).toEqual({ ...alone(), refusals: 'next', logger });
  });

  it.each<[string, unknown]>([
    ['audience', ['https://other.test']],
    ['audience', false],
    ['authUrl', 'https://other.test'],
    ['preset', 'jwt'],
    ['clientIds', ['pos-17']],
    ['generationClaim', 'generation'],
    ['generationSource', memoryGenerations()],
    ['maxTokenAgeSeconds', 60],
    ['resource', 'https://other.test'],
    ['exposeReasons', false],
    ['allowHttp', true],
  ])('replace the value of a variable: %s', (name, value) => {
    expect(beside({ [name]: value })).toEqual({ ...alone(), [name]: value });
  });

  it('replace a value that has members whole: nothing of the variables is left in it', () => {
    const opaque = { clientId: 'other', clientSecret: 'else' };
    expect(beside({ opaque, scopes: { map: { cook: 'kitchen:read' } } })).toEqual({
      ...alone(),
      opaque,
      scopes: { map: { cook: 'kitchen:read' } },
    });
  });

  it('that are undefined replace nothing', () => {
    const names = Object.keys(alone()).filter((name) => name !== 'issuer');
    expect(beside(Object.fromEntries(names.map((name) => [name, undefined])))).toEqual(alone());
  });

  it('drop what they rule out: keys the key set URL, jwksUri the keys, generationClaim: false the source', () => {
    set({ ...ALL, TILLGATE_JWKS_URI: 'https://login.test/jwks' });
    const { keys } = jwks(testKey());
    expect(beside({ keys })).toEqual({ ...alone(), keys, jwksUri: undefined });
    expect(beside({ generationClaim: false })).toEqual({
      ...alone(),
      generationClaim: false,
      generationSource: undefined,
    });
    set({ ...ALL, TILLGATE_KEYS: 'none' });
    const jwksUri = 'https://login.test/jwks';
    expect(beside({ jwksUri })).toEqual({ ...alone(), jwksUri, keys: undefined });
  });

  it('settle what would be a contradiction of the variables', () => {
    set({ TILLGATE_ISSUER: 'http://login.test', TILLGATE_AUDIENCE: AUDIENCE });
    expect(() => beside({})).toThrow('TILLGATE_ISSUER: got "http://login.test", expected https://');
    expect(() => beside({ allowHttp: false })).toThrow(ConfigurationError);
    expect(beside({ allowHttp: true })).toMatchObject({ issuer: 'http://login.test', allowHttp: true });

    set({ TILLGATE_ISSUER: ISSUER, TILLGATE_KEYS: 'none' });
    const opaque = { clientId: 'api', clientSecret: 'secret' };
    expect(() => beside({})).toThrow('TILLGATE_KEYS: got "none" without TILLGATE_INTROSPECTION_CLIENT_ID');
    expect(beside({ opaque })).toMatchObject({ keys: [], opaque });

    set({ TILLGATE_ISSUER: ISSUER, TILLGATE_GENERATIONS: 'redis://h', TILLGATE_GENERATION_CLAIM: 'off' });
    expect(() => beside({})).toThrow('TILLGATE_GENERATIONS: set while TILLGATE_GENERATION_CLAIM=off');
    expect(beside({ generationClaim: 'epoch' })).toMatchObject({ generationSource: 'redis://h' });
  });

  it('decide about requests', async () => {
    set({ TILLGATE_ISSUER: ISSUER, TILLGATE_AUDIENCE: AUDIENCE, TILLGATE_PRESET: 'hydra' });
    const gate = authenticate({
      refusals: 'next',
      preset: 'rfc9068',
      keys: jwks(testKey()),
      clock: () => NOW_MS,
      logger: recordingLogger(),
    });
    const errors: unknown[] = [];
    const app = express().use(gate, requireScope('orders:read'), (_req, res) => void res.json('ok'));
    app.use(((error: unknown, _req, res, _next) => {
      errors.push(error);
      res.status(418).end();
    }) as express.ErrorRequestHandler);
    await getFrom(app, token()).expect(200);
    await getFrom(app).expect(418);
    expect(errors).toEqual([expect.any(AuthError)]);
    expect(gate.status().issuers).toMatchObject([{ issuer: ISSUER, preset: { name: 'rfc9068', chosenBy: 'option' } }]);
    await gate.close();
  });

  it('are checked first: a misspelt one is named before any variable', () => {
    set({});
    expect(() => authenticate({ realn: 'shop' } as AuthenticateOptions)).toThrow(
      new TypeError('authenticate(): unknown option "realn"; did you mean "realm"?'),
    );
    const misspelt = { isuer: ISSUER, audience: AUDIENCE } as AuthenticateOptions;
    expect(() => authenticate(misspelt)).toThrow('unknown option "isuer"; did you mean "issuer"?');
    const request = { httpVersion: '1.1', headers: {} } as unknown as AuthenticateOptions;
    expect(() => authenticate(request)).toThrow('write authenticate(...)');
  });
});

describe('an issuer that is there', () => {
  const lacking =
    'authenticate(): option "issuer" must be the issuer\'s URL, exactly as in the token\'s iss, got undefined';

  it('counts alone, also where it is undefined: then no variable is read', () => {
    process.env['TILLGATE_PORT'] = 'wrong';
    const undefinedIssuer = { issuer: undefined, audience: AUDIENCE } as unknown as AuthenticateOptions;
    expect(() => authenticate(undefinedIssuer)).toThrow(new TypeError(lacking));
    const undefinedIssuers = { issuers: undefined } as unknown as AuthenticateOptions;
    expect(() => authenticate(undefinedIssuers)).toThrow(
      new TypeError('authenticate(): option "issuers" must be an array of at least one issuer, got undefined'),
    );
    const gate = authenticate({ issuer: 'https://own.test', audience: 'a', keys: jwks(testKey()), logger: false });
    expect(gate.status().issuers).toMatchObject([{ issuer: 'https://own.test', preset: { name: 'rfc9068' } }]);
  });

  it('is own: an inherited one is none', () => {
    const options = Object.create({ issuer: 'https://inherited.test' }) as AuthenticateOptions;
    expect(besideVariables(options)).toMatchObject({ issuer: ISSUER });
  });
});

describe('a missing issuer', () => {
  const MISSING =
    'TILLGATE_AUTH_URL: not set, expected the URL of the authorization server, for example TILLGATE_AUTH_URL=https://login.example.com; set it, or TILLGATE_ISSUER, or give authenticate() the option "issuer"';
  const UNREAD =
    '; a .env lies in this folder, which plain node does not read: start the app with node --env-file=.env';
  const before = process.cwd();
  let folder: string;
  beforeEach(() => {
    set({});
    folder = mkdtempSync(join(tmpdir(), 'tillgate-'));
    process.chdir(folder);
  });
  afterEach(() => {
    process.chdir(before);
    rmSync(folder, { recursive: true });
  });

  const problems = (options?: object): readonly string[] => {
    try {
      authenticate(options);
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigurationError);
      return (error as ConfigurationError).problems;
    }
    throw new Error('accepted');
  };

  it.each([undefined, {}, { refusals: 'next' }, { audience: AUDIENCE }])('is told with both ways: %j', (options) => {
    expect(problems(options)).toEqual([MISSING]);
  });

  it('is told with the .env that plain node does not read, and with nothing of it', () => {
    writeFileSync('.env', 'TILLGATE_ISSUER=https://user:secret@login.test\n');
    for (const options of [undefined, { refusals: 'next' }]) expect(problems(options)).toEqual([MISSING + UNREAD]);
    const fromEnvironment = { issuer: process.env['ISSUER'], audience: AUDIENCE } as unknown as AuthenticateOptions;
    expect(() => authenticate(fromEnvironment)).toThrow(
      new TypeError(
        `authenticate(): option "issuer" must be the issuer's URL, exactly as in the token's iss, got undefined${UNREAD}`,
      ),
    );
  });
});
