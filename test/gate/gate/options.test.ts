import { authenticate } from '../../../src/gate';
import type { AuthenticateOptions } from '../../../src/gate';
import { AUDIENCE, ISSUER } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { ALGORITHMS as KNOWN } from '../../../src/gate/token/signature';
import { describe as named } from '../../../src/gate/core/options';
import { PRESET_NAMES } from '../../../src/gate/token/presets';
import { dpop, mtls } from '../../../src/gate/possession';
import { recordingLogger } from '../../support/log';

describe('wrong options', () => {
  const KEYS = jwks(testKey());
  const good = { issuer: ISSUER, audience: AUDIENCE, keys: KEYS };
  const make = (options: unknown): unknown => authenticate(options as AuthenticateOptions);
  const OPAQUE = { url: 'https://login.test/introspect', clientId: 'api', clientSecret: 'secret' };
  const ALGORITHMS = 'RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519';
  const PRESETS = PRESET_NAMES.join(', ');
  const onlyTls = 'must be https: (http: is accepted on loopback only, or with allowHttp: true), got';
  const AUD = 'the aud of your API: a non-empty string, or an array of them';
  const CLAIM = 'the name of a claim, or false to switch the check off';

  describe('authenticate(): wrong options throw at construction', () => {
    /** Options laid over good ones; `undefined` takes one away. The message stands without `authenticate(): `. */
    const rows: readonly [Record<string, unknown>, string][] = [
      [{ issuer: undefined }, `option "issuer" must be the issuer's URL, exactly as in the token's iss, got undefined`],
      [{ issuer: '' }, 'option "issuer" must be a non-empty string, got ""'],
      [{ issuer: new URL(ISSUER) }, 'option "issuer" must be a non-empty string, got an object'],
      [{ issuer: null }, 'option "issuer" must be a non-empty string, got null'],
      [{ keys: undefined, issuer: 'login.test' }, 'option "issuer" must be an absolute https: URL, got "login.test"'],
      [{ keys: undefined, issuer: 'https://' }, 'option "issuer" must be an absolute https: URL, got "https://"'],
      [
        { keys: undefined, issuer: 'ftp://login.test' },
        'option "issuer" must be an absolute https: URL, got "ftp://login.test"',
      ],
      [{ keys: undefined, issuer: 'http://login.test' }, `option "issuer" ${onlyTls} "http://login.test"`],
      [
        { keys: undefined, issuer: 'http://127.0.0.1.evil.test' },
        `option "issuer" ${onlyTls} "http://127.0.0.1.evil.test"`,
      ],
      [{ keys: undefined, authUrl: 'http://login.test' }, `option "authUrl" ${onlyTls} "http://login.test"`],
      [{ keys: undefined, jwksUri: 'http://login.test/jwks' }, `option "jwksUri" ${onlyTls} "http://login.test/jwks"`],
      [{ keys: undefined, jwksUri: '/jwks' }, 'option "jwksUri" must be an absolute https: URL, got "/jwks"'],
      [{ jwksUri: 'https://login.test/jwks' }, 'give "keys" or "jwksUri", not both'],
      [{ keys: 'pem' }, 'option "keys" must be a JSON Web Key Set, got "pem"'],
      [{ keys: null }, 'option "keys" must be a JSON Web Key Set, got null'],
      [{ keys: { keys: [] } }, 'option "keys" must be a JSON Web Key Set with at least one key'],
      [{ audience: undefined }, `option "audience" must be ${AUD}, got undefined`],
      [{ audience: '' }, `option "audience" must be ${AUD}, got ""`],
      [{ audience: [] }, `option "audience" must be ${AUD}, got an empty array`],
      [{ audience: ['a', ''] }, `option "audience" must be ${AUD}, got an array of 2`],
      [{ clientIds: [] }, 'option "clientIds" must be an array of client ids, got an empty array'],
      [{ clientIds: [5] }, 'option "clientIds" must be an array of client ids, got an array of 1'],
      [{ audience: false }, `option "audience" must be ${AUD}, got false`],
      [
        { audience: true, preset: 'cognito' },
        `option "audience" must be ${AUD}, or false to accept tokens without one, got true`,
      ],
      [{ preset: 'azure' }, `option "preset" must be one of ${PRESETS}, got "azure"`],
      [{ preset: 'constructor' }, `option "preset" must be one of ${PRESETS}, got "constructor"`],
      [{ algorithms: ['HS256'] }, `option "algorithms" must be an array with some of ${ALGORITHMS}, got an array of 1`],
      [{ algorithms: ['none'] }, `option "algorithms" must be an array with some of ${ALGORITHMS}, got an array of 1`],
      [
        { algorithms: ['ES256', 'HS256'] },
        `option "algorithms" must be an array with some of ${ALGORITHMS}, got an array of 2`,
      ],
      [{ algorithms: [] }, `option "algorithms" must be an array with some of ${ALGORITHMS}, got an empty array`],
      [{ algorithms: 'RS256' }, `option "algorithms" must be an array with some of ${ALGORITHMS}, got "RS256"`],
      [{ scopes: { form: ['roles'] } }, 'unknown option "scopes.form"; did you mean "from"?'],
      [{ scopes: null }, 'option "scopes" must be an object, got null'],
      [{ opaque: true }, 'option "opaque" must be an object, got true'],
      [{ opaque: { ...OPAQUE, clientID: 'a' } }, 'unknown option "opaque.clientID"; did you mean "clientId"?'],
      [
        { opaque: { ...OPAQUE, clientId: undefined } },
        'option "opaque.clientId" must be the id of a client of the authorization server, got undefined',
      ],
      ...[undefined, '', 4711, ['secret']].map((clientSecret): [Record<string, unknown>, string] => [
        { opaque: { ...OPAQUE, clientSecret } },
        `option "opaque.clientSecret" must be a non-empty string${clientSecret === undefined ? ', got undefined' : ''}`,
      ]),
      [{ opaque: { ...OPAQUE, url: 'http://login.test/i' } }, `option "opaque.url" ${onlyTls} "http://login.test/i"`],
      [
        { opaque: { ...OPAQUE, url: 'https://api:secret@login.test/i' } },
        'option "opaque.url" must be a URL without user name and password, got "https://login.test/i"',
      ],
      [
        { opaque: { ...OPAQUE, url: undefined }, issuer: 'till-17' },
        'option "issuer" must be an absolute https: URL, got "till-17"',
      ],
      [
        { opaque: { ...OPAQUE, cacheMs: 300_001 } },
        'option "opaque.cacheMs" must be a number of milliseconds from 0 to 300000, got 300001',
      ],
      [
        { opaque: { ...OPAQUE, cacheMs: NaN } },
        'option "opaque.cacheMs" must be a number of milliseconds from 0 to 300000, got NaN',
      ],
      [{ generationClaim: true }, `option "generationClaim" must be ${CLAIM}, got true`],
      [{ generationClaim: '' }, `option "generationClaim" must be ${CLAIM}, got ""`],
      [{ generationClaim: { claim: 'iat' } }, `option "generationClaim" must be ${CLAIM}, got an object`],
      [{ generation: 'iat' }, 'unknown option "generation"; did you mean "generationClaim"?'],
      [{ generations: 'https://login.test' }, 'unknown option "generations"; did you mean "generationSource"?'],
      [{ generationSource: null }, 'option "generationSource" must be a generation source, or its URL, got null'],
      [{ generationSource: 17 }, 'option "generationSource" must be a generation source, or its URL, got 17'],
      [{ generationSource: {} }, 'option "generationSource" must be a generation source, or its URL, got an object'],
      [
        { generationSource: 'http://login.test/generations' },
        `option "generationSource" ${onlyTls} "http://login.test/generations"`,
      ],
      [
        { generationSource: 'HTTP://login.test/generations' },
        `option "generationSource" must be an absolute https: URL, got "HTTP://login.test/generations"`,
      ],
      [
        { generationSource: 'http://tillgate:secret@login.test/g' },
        `option "generationSource" ${onlyTls} "http://login.test/g"`,
      ],
      [{ maxStalenessMs: NaN }, `option "maxStalenessMs" must be a number of milliseconds from 1 to 86400000, got NaN`],
      [
        { maxStalenessMs: '60000' },
        `option "maxStalenessMs" must be a number of milliseconds from 1 to 86400000, got "60000"`,
      ],
      [
        { keysMaxAgeMs: Infinity },
        `option "keysMaxAgeMs" must be a number of milliseconds from 1000 to 86400000, got Infinity`,
      ],
      [{ keysStaleMs: -1 }, `option "keysStaleMs" must be a number of milliseconds from 0 to 604800000, got -1`],
      [
        { clockToleranceSeconds: NaN },
        'option "clockToleranceSeconds" must be a number of seconds from 0 to 300, got NaN',
      ],
      [
        { clockToleranceSeconds: 301 },
        'option "clockToleranceSeconds" must be a number of seconds from 0 to 300, got 301',
      ],
      [
        { maxTokenAgeSeconds: 0 },
        `option "maxTokenAgeSeconds" must be a whole number of seconds from 1 to 31622400, got 0`,
      ],
      [{ onStale: 'ignore' }, 'option "onStale" must be one of reject, accept, got "ignore"'],
      [{ unguarded: 'deny' }, 'option "unguarded" must be one of allow, warn, refuse, got "deny"'],
      [{ optional: 'yes' }, 'option "optional" must be true or false, got "yes"'],
      [{ exposeReasons: 1 }, 'option "exposeReasons" must be true or false, got 1'],
      [{ allowHttp: 'on' }, 'option "allowHttp" must be true or false, got "on"'],
      [
        { resource: 'https://user:secret@api.test' },
        'option "resource" must be a URL without user name and password, got "https://api.test/"',
      ],
      [
        { issuer: 'https://user:secret@login.test/a?key=secret' },
        'option "issuer" must be a URL without user name and password, got "https://login.test/a"',
      ],
      ...(['issuer', 'authUrl'] as const).flatMap((name) =>
        ['?tenant=1', '/?tenant=1', '#b', '/#b'].map((end): [Record<string, unknown>, string] => [
          { [name]: `https://login.test${end}` },
          `option "${name}" must be a URL without a query and a fragment, got "https://login.test/"`,
        ]),
      ),
      [
        { issuer: 'https://login.test/a?' },
        'option "issuer" must be a URL without a query and a fragment, got "https://login.test/a?"',
      ],
      [
        { issuer: 'HTTPS://login.test?a' },
        'option "issuer" must be a URL without a query and a fragment, got "https://login.test/"',
      ],
      [
        { resource: 'https://api.test/#a' },
        'option "resource" must be a URL without a fragment, got "https://api.test/"',
      ],
      [
        { keys: undefined, jwksUri: 'https://:secret@login.test/jwks' },
        'option "jwksUri" must be a URL without user name and password, got "https://login.test/jwks"',
      ],
      [
        { keys: undefined, authUrl: 'ftp://login.test/a?key=secret' },
        'option "authUrl" must be an absolute https: URL, got "ftp://login.test/a"',
      ],
      [{ logger: null }, 'option "logger" must be an object with the methods info, warn and error, or false, got null'],
      [
        { resource: 'x-https://api.test' },
        'option "resource" must be an absolute https: URL, got "x-https://api.test"',
      ],
      [{ realm: '' }, 'option "realm" must be a non-empty string, got ""'],
      [{ realm: 1 }, 'option "realm" must be a non-empty string, got 1'],
      [{ resource: 'api.test' }, 'option "resource" must be an absolute https: URL, got "api.test"'],
      [{ resource: 'https://' }, 'option "resource" must be an absolute https: URL, got "https://"'],
      [{ onDecision: 'log' }, 'option "onDecision" must be a function, got "log"'],
      [{ onDecision: false }, 'option "onDecision" must be a function, got false'],
      [
        { logger: console.log },
        'option "logger" must be an object with the methods info, warn and error, or false, got a function',
      ],
      [
        { logger: { info() {} } },
        'option "logger" must be an object with the methods info, warn and error, or false, got an object',
      ],
      [{ clock: 0 }, 'option "clock" must be a function, got 0'],
      [{ schedule: {} }, 'option "schedule" must be a function, got an object'],
      [{ fetch: 'node-fetch' }, 'option "fetch" must be a function, got "node-fetch"'],
      [
        { preset: 'keyclok' },
        `option "preset" must be one of ${PRESET_NAMES.join(', ')}, got "keyclok"; did you mean "keycloak"?`,
      ],
      [{ preset: 'duende' }, `option "preset" must be one of ${PRESET_NAMES.join(', ')}, got "duende"`],
      [{ audiense: 'x' }, 'unknown option "audiense"; did you mean "audience"?'],
      [{ jwksURI: 'x' }, 'unknown option "jwksURI"; did you mean "jwksUri"?'],
      [{ maxTokenAge: 1 }, 'unknown option "maxTokenAge"; did you mean "maxTokenAgeSeconds"?'],
      [{ Issuer: 'x' }, 'unknown option "Issuer"; did you mean "issuer"?'],
      [{ issuers: [] }, 'option "issuer" goes into each entry of "issuers", not next to it'],
    ];
    it.each(rows)('%j', (changes, message) => {
      expect(() => make({ ...good, ...changes })).toThrow(new TypeError(`authenticate(): ${message}`));
    });

    it.each<[unknown, string]>([
      [{ issuers: [] }, 'option "issuers" must be an array of at least one issuer, got an empty array'],
      [{ issuers: good }, 'option "issuers" must be an array of at least one issuer, got an object'],
      [{ issuers: [good, good] }, 'option "issuers" names one issuer twice'],
      [{ issuers: [{ ...good, realm: 'x' }] }, expect.stringContaining('unknown option "realm"') as never],
      [{ issuers: [null] }, 'expected an options object, got null'],
      ['https://login.test', 'expected an options object, got "https://login.test"'],
      [null, 'expected an options object, got null'],
      [[good], 'expected an options object, got an array of 1'],
    ])('%j', (options, message) => {
      const caught = catchFrom(() => make(options));
      expect(caught).toBeInstanceOf(TypeError);
      const text = String((caught as Error).message).replace('authenticate(): ', '');
      expect(text).toEqual(message);
    });

    it('never shows key material or a password in a message', () => {
      const secret = 'c2VjcmV0LWtleS1tYXRlcmlhbA';
      const caught = catchFrom(() => make({ ...good, keys: [{ kty: 'oct', k: secret }] }));
      expect(String(caught)).not.toContain(secret);
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
});

describe('options of possession', () => {
  const make = (options: object): unknown =>
    authenticate({ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), logger: recordingLogger(), ...options });
  const BASE = { baseUrl: 'https://api.test' };
  const URL_EXPECTED =
    'option "baseUrl" must be the public http(s) URL of the root of the app, as clients have it (or set "resource" of the gate)';
  const KINDS = 'option "possession" must be an array of what dpop() and mtls() return, each once';

  it.each<[object, string]>([
    [{ baseUrl: 'api.test' }, `${URL_EXPECTED}, got "api.test"`],
    [{ baseUrl: 'https://api.test/?x' }, `${URL_EXPECTED}, got "https://api.test/"`],
    [{ baseUrl: 'https://a:b@api.test' }, `${URL_EXPECTED}, got "https://api.test/"`],
    [{ baseUrl: 'x https://api.test' }, `${URL_EXPECTED}, got "x https://api.test"`],
    [{ ...BASE, algorithm: [] }, 'unknown option "algorithm"; did you mean "algorithms"?'],
    [
      { ...BASE, algorithms: ['HS256'] },
      'option "algorithms" must be an array with some of ' +
        'RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, got an array of 1',
    ],
    [
      { ...BASE, proofMaxAgeSeconds: 601 },
      'option "proofMaxAgeSeconds" must be a number of seconds from 1 to 600, got 601',
    ],
    ...[[], 'ES256', ['ES256', 'HS256']].map((algorithms): [object, string] => [
      { ...BASE, algorithms },
      `option "algorithms" must be an array with some of ${KNOWN.join(', ')}, got ${named(algorithms)}`,
    ]),
    [{ ...BASE, nonce: 'x' }, 'option "nonce" must be true or false, got "x"'],
    [{ ...BASE, nonce: { secret: 'x' } }, 'option "nonce" must be true or false, got an object'],
    [{ ...BASE, replayStore: {} }, 'option "replayStore" must be an object with the method remember, got an object'],
    [{ ...BASE, replayStore: null }, 'option "replayStore" must be an object with the method remember, got null'],
  ])('dpop() refuses %j', (options, message) => {
    expect(() => dpop(options)).toThrow(new TypeError(`dpop(): ${message}`));
  });

  it.each<[object, string]>([
    [{ certificate: 'x-client-certificate' }, 'option "certificate" must be a function, got "x-client-certificate"'],
    [{ certificat: () => undefined }, 'unknown option "certificat"; did you mean "certificate"?'],
    [{ header: 'x' }, 'unknown option "header"; known are certificate'],
  ])('mtls() refuses %j', (options, message) => {
    expect(() => mtls(options)).toThrow(new TypeError(`mtls(): ${message}`));
  });

  it.each<[object, string]>([
    [{ possession: true }, `${KINDS}, got true`],
    [{ possession: mtls() }, `${KINDS}, got an object`],
    [{ possession: [mtls] }, `${KINDS}, got an array of 1`],
    [{ possession: [null] }, `${KINDS}, got an array of 1`],
    [{ possession: [mtls(), mtls()] }, `${KINDS}, got an array of 2`],
    [
      { possessionRequired: 'yes', possession: [mtls()] },
      'option "possessionRequired" must be true or false, got "yes"',
    ],
    ...[{}, { possession: [] }].map((options): [object, string] => [
      { possessionRequired: true, ...options },
      'option "possessionRequired" needs "possession": the kinds of proof, one of which is required',
    ]),
  ])('authenticate() refuses %j', (options, message) => {
    expect(() => make(options)).toThrow(new TypeError(`authenticate(): ${message}`));
  });

  it('authenticate() refuses dpop() where neither it nor the gate says the URL of the API', () => {
    expect(() => make({ possession: [dpop()] })).toThrow(new TypeError(`dpop(): ${URL_EXPECTED}, got undefined`));
  });

  it.each<[string, object]>([
    ['both kinds', { possession: [dpop(BASE), mtls()] }],
    ['both kinds, one of them required', { possession: [dpop(BASE), mtls()], possessionRequired: true }],
    ['none', { possession: [], possessionRequired: false }],
    ['a base URL with a path', { possession: [dpop({ baseUrl: 'http://localhost:4000/shop/' })] }],
    ['the URL of the gate', { possession: [dpop()], resource: 'https://api.test/v1' }],
    ['every option', { possession: [dpop({ ...BASE, nonce: true, algorithms: ['ES256'], proofMaxAgeSeconds: 1 })] }],
    ['a function', { possession: [mtls({ certificate: () => undefined })] }],
  ])('%s is accepted', (_what, options) => {
    expect(() => make(options)).not.toThrow();
  });
});
