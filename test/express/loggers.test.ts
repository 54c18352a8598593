import { readSettings, createApp } from '../../src/app';
import { authenticate, problemHandler, protectedResourceMetadata, signalsReceiver } from '../../src';
import { createAuthServer } from '../../src/auth-server';
import { memoryGenerations } from '../../src/generation';
import { AUDIENCE, ISSUER } from '../support/issuer';
import { jwks, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

const keys = jwks(testKey());
const settings = readSettings({ TILLGATE_AUTH_URL: 'https://login.test' });
/** Everything that takes a logger, with options that are good besides. */
const factories: readonly [name: string, make: (logger: unknown) => unknown][] = [
  ['authenticate', (logger) => authenticate({ issuer: ISSUER, audience: AUDIENCE, keys, logger } as never)],
  ['problemHandler', (logger) => problemHandler({ logger } as never)],
  [
    'signalsReceiver',
    (logger) => {
      const generationSource = memoryGenerations();
      return signalsReceiver({ transmitter: ISSUER, audience: AUDIENCE, keys, generationSource, logger } as never);
    },
  ],
  ['createApp', (logger) => createApp({ settings, logger } as never)],
  [
    'createAuthServer',
    (logger) =>
      createAuthServer({ issuer: 'http://127.0.0.1:4000', audience: AUDIENCE, dataDir: '.', logger } as never),
  ],
] satisfies [string, (logger: unknown) => unknown][];

describe.each(factories)('%s()', (name, make) => {
  it.each<[string, unknown, string]>([
    ['null', null, 'null'],
    ['a function', () => {}, 'a function'],
    ['a string', 'pino', '"pino"'],
    ...['info', 'warn', 'error'].map((method): [string, unknown, string] => [
      `a logger without ${method}()`,
      { ...recordingLogger(), [method]: undefined },
      'an object',
    ]),
  ])('refuses %s as its logger', async (_what, logger, got) => {
    await expect(Promise.resolve().then(() => make(logger))).rejects.toThrow(
      new TypeError(`${name}(): option "logger" must be an object with the methods info, warn and error, got ${got}`),
    );
  });
});

describe('an option is refused in the name of the function that it was given to', () => {
  const metadata = (options: object) => (): unknown =>
    protectedResourceMetadata({ resource: 'https://api.test', authorizationServers: [ISSUER], ...options });

  it.each<[string, () => unknown]>([
    ['unknown option "dpop.required "', metadata({ dpop: { 'required ': true } })],
    ['option "dpop.required" must be true or false, got 1', metadata({ dpop: { required: 1 } })],
    [
      'option "dpop.nonce.secret" must be a string of at least 32 characters',
      metadata({ dpop: { nonce: { secret: 'x' } } }),
    ],
    ['unknown option "dpop.nonce.key"', metadata({ dpop: { nonce: { key: 'x' } } })],
    ['unknown option "mtls.heder"', metadata({ mtls: { heder: 'x' } })],
    ['options "mtls.header" and "mtls.trustedProxies" must be given together', metadata({ mtls: { header: 'x' } })],
  ])('protectedResourceMetadata(): %s', (message, make) => {
    expect(make).toThrow(TypeError);
    expect(make).toThrow(`protectedResourceMetadata(): ${message}`);
  });

  const generationSource = memoryGenerations();
  it.each<[string, object]>([
    ['option "keys" must be a JSON Web Key Set with at least one key', { keys: [] }],
    ['option "keys" must be a JSON Web Key Set with at least one key', { keys: { keys: [] } }],
    ['option "keys" must be a JSON Web Key Set', { keys: 'x' }],
    ['option "keys": key 0 cannot verify tokens: it is a private key', { keys: [{ kty: 'EC', d: 'x' }] }],
    ['option "keys": key 1 cannot verify tokens: its key material is broken', { keys: [...keys.keys, { kty: 'EC' }] }],
  ])('signalsReceiver(): %s', (message, options) => {
    const make = () => signalsReceiver({ transmitter: ISSUER, audience: AUDIENCE, generationSource, ...options });
    expect(make).toThrow(TypeError);
    expect(make).toThrow(`signalsReceiver(): ${message}`);
  });
});
