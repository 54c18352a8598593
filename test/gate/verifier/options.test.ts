import { authenticate } from '../../../src/gate';
import type { AuthenticateOptions } from '../../../src/gate';
import { AUDIENCE, ISSUER } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { ALGORITHMS as KNOWN } from '../../../src/gate/token/signature';
import { describe as named } from '../../../src/gate/core/words';
import { PRESET_NAMES } from '../../../src/gate/token/presets';
import { dpop, mtls } from '../../../src/gate/possession';
import { recordingLogger } from '../../support/log';

describe('authenticate(): wrong options throw at construction', () => {
  const good = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()) };
  const make = (options: unknown): unknown => authenticate(options as AuthenticateOptions);

  const text = 'must be a non-empty string, got';
  const https = 'must be an absolute https: URL, got';
  const onlyTls = 'must be https: (http: is accepted on loopback only, or with allowHttp: true), got';
  const noUser = 'must be a URL without user name and password, got';
  const noQuery = 'must be a URL without a query and a fragment, got';
  const boolean = 'must be true or false, got';
  const audience = 'must be the aud of your API: a non-empty string, or an array of them';
  const preset = `must be one of ${PRESET_NAMES.join(', ')}, got`;
  const algorithms =
    'must be an array with some of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, got';
  const sharedSecret =
    'a shared secret verifies no token: have the issuer sign with a key pair, whose keys are fetched';
  const claim = 'must be the name of a claim, or false to switch the check off, got';
  const source = 'must be a generation source, or its URL, got';
  const ms = (from: number, to: number): string => `must be a number of milliseconds from ${from} to ${to}, got`;
  const tolerance = 'must be a number of seconds from 0 to 300, got';
  const age = 'must be a whole number of seconds from 1 to 31622400, got';
  const logger = 'must be an object with the methods info, warn and error, or false, got';
  const ends = ['?tenant=1', '/?tenant=1', '#b', '/#b'];

  /** One wrong option, next to good ones. */
  it.each<[string, unknown, string]>([
    ['issuer', undefined, `must be the issuer's URL, exactly as in the token's iss, got undefined`],
    ['issuer', '', `${text} ""`],
    ['issuer', new URL(ISSUER), `${text} an object`],
    ['issuer', null, `${text} null`],
    ['issuer', 'https://user:secret@login.test/a?key=secret', `${noUser} "https://login.test/a"`],
    ['issuer', 'https://login.test/a?', `${noQuery} "https://login.test/a?"`],
    ['issuer', 'HTTPS://login.test?a', `${noQuery} "https://login.test/"`],
    ...ends.map((end): [string, unknown, string] => ['issuer', ISSUER + end, `${noQuery} "https://login.test/"`]),
    ...ends.map((end): [string, unknown, string] => ['authUrl', ISSUER + end, `${noQuery} "https://login.test/"`]),
    ['keys', 'pem', 'must be a JSON Web Key Set, got "pem"'],
    ['keys', null, 'must be a JSON Web Key Set, got null'],
    ['keys', { keys: [] }, 'must be a JSON Web Key Set with at least one key'],
    ['audience', undefined, `${audience}, got undefined`],
    ['audience', '', `${audience}, got ""`],
    ['audience', [], `${audience}, got an empty array`],
    ['audience', ['a', ''], `${audience}, got an array of 2`],
    ['audience', false, `${audience}, got false`],
    ['clientIds', [], 'must be an array of client ids, got an empty array'],
    ['clientIds', [5], 'must be an array of client ids, got an array of 1'],
    ['preset', 'azure', `${preset} "azure"`],
    ['preset', 'constructor', `${preset} "constructor"`],
    ['preset', 'keyclok', `${preset} "keyclok"; did you mean "keycloak"?`],
    ['preset', 'duende', `${preset} "duende"`],
    ['algorithms', ['HS256'], `${algorithms} "HS256": ${sharedSecret}`],
    ['algorithms', ['none'], `${algorithms} an array of 1`],
    ['algorithms', ['ES256', 'HS256'], `${algorithms} "HS256": ${sharedSecret}`],
    ['algorithms', ['ES256', 'none'], `${algorithms} an array of 2`],
    ['algorithms', [], `${algorithms} an empty array`],
    ['algorithms', 'RS256', `${algorithms} "RS256"`],
    ['scopes', null, 'must be an object, got null'],
    ['opaque', true, 'must be an object, got true'],
    ['generationClaim', true, `${claim} true`],
    ['generationClaim', '', `${claim} ""`],
    ['generationClaim', 'ext.', `${claim} "ext."`],
    ['generationClaim', [], `${claim} an empty array`],
    ['generationClaim', ['ext', ''], `${claim} an array of 2`],
    ['generationClaim', ['ext', , 'a'], `${claim} an array of 3`], // eslint-disable-line no-sparse-arrays -- a hole
    ['generationClaim', { claim: 'iat' }, `${claim} an object`],
    ['generationSource', null, `${source} null`],
    ['generationSource', 17, `${source} 17`],
    ['generationSource', {}, `${source} an object`],
    ['generationSource', 'http://login.test/generations', `${onlyTls} "http://login.test/generations"`],
    ['generationSource', 'HTTP://login.test/generations', `${https} "HTTP://login.test/generations"`],
    ['generationSource', 'http://tillgate:secret@login.test/g', `${onlyTls} "http://login.test/g"`],
    ['maxStalenessMs', NaN, `${ms(1, 86_400_000)} NaN`],
    ['maxStalenessMs', '60000', `${ms(1, 86_400_000)} "60000"`],
    ['keysMaxAgeMs', Infinity, `${ms(1_000, 86_400_000)} Infinity`],
    ['keysStaleMs', -1, `${ms(0, 604_800_000)} -1`],
    ['clockToleranceSeconds', NaN, `${tolerance} NaN`],
    ['clockToleranceSeconds', 301, `${tolerance} 301`],
    ['maxTokenAgeSeconds', 0, `${age} 0`],
    ['onStale', 'ignore', 'must be one of reject, accept, got "ignore"'],
    ['unguarded', 'deny', 'must be one of allow, warn, refuse, got "deny"'],
    ['optional', 'yes', `${boolean} "yes"`],
    ['exposeReasons', 1, `${boolean} 1`],
    ['allowHttp', 'on', `${boolean} "on"`],
    ['resource', 'https://user:secret@api.test', `${noUser} "https://api.test/"`],
    ['resource', 'https://api.test/#a', 'must be a URL without a fragment, got "https://api.test/"'],
    ['resource', 'x-https://api.test', `${https} "x-https://api.test"`],
    ['resource', 'api.test', `${https} "api.test"`],
    ['resource', 'https://', `${https} "https://"`],
    ['realm', '', `${text} ""`],
    ['realm', 1, `${text} 1`],
    ['onDecision', 'log', 'must be a function, got "log"'],
    ['onDecision', false, 'must be a function, got false'],
    ['logger', null, `${logger} null`],
    ['logger', console.log, `${logger} a function`],
    ['logger', 'pino', `${logger} "pino"`],
    ...['info', 'warn', 'error'].map((method): [string, unknown, string] => {
      return ['logger', { ...recordingLogger(), [method]: undefined }, `${logger} an object`];
    }),
    ['clock', 0, 'must be a function, got 0'],
    ['schedule', {}, 'must be a function, got an object'],
    ['fetch', 'node-fetch', 'must be a function, got "node-fetch"'],
  ])('%s: %j', (name, value, message) => {
    const expected = new TypeError(`authenticate(): option "${name}" ${message}`);
    expect(() => make({ ...good, [name]: value })).toThrow(expected);
  });

  it.each<[string, unknown, string]>([
    ['issuer', 'login.test', `${https} "login.test"`],
    ['issuer', 'https://', `${https} "https://"`],
    ['issuer', 'ftp://login.test', `${https} "ftp://login.test"`],
    ['issuer', 'http://login.test', `${onlyTls} "http://login.test"`],
    ['issuer', 'http://127.0.0.1.evil.test', `${onlyTls} "http://127.0.0.1.evil.test"`],
    ['authUrl', 'http://login.test', `${onlyTls} "http://login.test"`],
    ['authUrl', 'ftp://login.test/a?key=secret', `${https} "ftp://login.test/a"`],
    ['jwksUri', 'http://login.test/jwks', `${onlyTls} "http://login.test/jwks"`],
    ['jwksUri', '/jwks', `${https} "/jwks"`],
    ['jwksUri', 'https://:secret@login.test/jwks', `${noUser} "https://login.test/jwks"`],
  ])('where keys are fetched, %s: %j', (name, value, message) => {
    const expected = new TypeError(`authenticate(): option "${name}" ${message}`);
    expect(() => make({ ...good, keys: undefined, [name]: value })).toThrow(expected);
  });

  const secret = 'must be a non-empty string';
  const client = 'must be the id of a client of the authorization server, got undefined';
  it.each<[object, string]>([
    [{ clientID: 'a' }, 'unknown option "opaque.clientID"; did you mean "clientId"?'],
    [{ clientId: undefined }, `option "opaque.clientId" ${client}`],
    [{ clientSecret: undefined }, `option "opaque.clientSecret" ${secret}, got undefined`],
    ...['', 4711, ['secret']].map((clientSecret): [object, string] => {
      return [{ clientSecret }, `option "opaque.clientSecret" ${secret}`];
    }),
    [{ url: 'http://login.test/i' }, `option "opaque.url" ${onlyTls} "http://login.test/i"`],
    [{ url: 'https://api:secret@login.test/i' }, `option "opaque.url" ${noUser} "https://login.test/i"`],
    [{ cacheMs: 300_001 }, `option "opaque.cacheMs" ${ms(0, 300_000)} 300001`],
    [{ cacheMs: NaN }, `option "opaque.cacheMs" ${ms(0, 300_000)} NaN`],
  ])('opaque: %j', (changes, message) => {
    const opaque = { url: 'https://login.test/introspect', clientId: 'api', clientSecret: 'secret', ...changes };
    expect(() => make({ ...good, opaque })).toThrow(new TypeError(`authenticate(): ${message}`));
  });

  /** Options laid over good ones. */
  it.each<[Record<string, unknown>, string]>([
    [{ jwksUri: 'https://login.test/jwks' }, 'give "keys" or "jwksUri", not both'],
    [
      { audience: true, preset: 'cognito' },
      `option "audience" ${audience}, or false to accept tokens without one, got true`,
    ],
    [{ opaque: { clientId: 'api', clientSecret: 'secret' }, issuer: 'till-17' }, `option "issuer" ${https} "till-17"`],
    [{ scopes: { form: ['roles'] } }, 'unknown option "scopes.form"; did you mean "from"?'],
    [{ generation: 'iat' }, 'unknown option "generation"; did you mean "generationClaim"?'],
    [{ generations: 'https://login.test' }, 'unknown option "generations"; did you mean "generationSource"?'],
    [{ audiense: 'x' }, 'unknown option "audiense"; did you mean "audience"?'],
    [{ jwksURI: 'x' }, 'unknown option "jwksURI"; did you mean "jwksUri"?'],
    [{ maxTokenAge: 1 }, 'unknown option "maxTokenAge"; did you mean "maxTokenAgeSeconds"?'],
    [{ Issuer: 'x' }, 'unknown option "Issuer"; did you mean "issuer"?'],
    [{ issuers: [] }, 'option "issuer" goes into each entry of "issuers", not next to it'],
  ])('%j', (changes, message) => {
    expect(() => make({ ...good, ...changes })).toThrow(new TypeError(`authenticate(): ${message}`));
  });

  it.each<[unknown, string]>([
    [{ issuers: [] }, 'option "issuers" must be an array of at least one issuer, got an empty array'],
    [{ issuers: good }, 'option "issuers" must be an array of at least one issuer, got an object'],
    [{ issuers: [good, good] }, 'option "issuers" names one issuer twice'],
    [{ issuers: [{ ...good, realm: 'x' }] }, 'unknown option "realm"'],
    [{ issuers: [null] }, 'expected an options object, got null'],
    ['https://login.test', 'expected an options object, got "https://login.test"'],
    [null, 'expected an options object, got null'],
    [[good], 'expected an options object, got an array of 1'],
  ])('%j', (options, message) => {
    expect(() => make(options)).toThrow(TypeError);
    expect(() => make(options)).toThrow(message);
  });

  it('never shows key material in a message', () => {
    const keys = [{ kty: 'oct', k: 'c2VjcmV0LWtleS1tYXRlcmlhbA' }];
    expect(() => make({ ...good, keys })).toThrow(/^(?!.*c2VjcmV0)/);
  });
});

describe('options of possession', () => {
  const make = (options: object): unknown =>
    authenticate({ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), logger: recordingLogger(), ...options });
  const BASE = { baseUrl: 'https://api.test' };
  const URL_EXPECTED =
    'option "baseUrl" must be the public http(s) URL of the root of the app, as clients have it (or set "resource" of the gate)';
  const NEEDS = 'option "possessionRequired" needs "possession": the kinds of proof, one of which is required';
  const AGE = 'a number of seconds from 1 to 600';
  const KINDS = 'option "possession" must be an array of what dpop() and mtls() return, each once';

  it.each<[object, string]>([
    [{ baseUrl: 'api.test' }, `${URL_EXPECTED}, got "api.test"`],
    [{ baseUrl: 'https://api.test/?x' }, `${URL_EXPECTED}, got "https://api.test/"`],
    [{ baseUrl: 'https://a:b@api.test' }, `${URL_EXPECTED}, got "https://api.test/"`],
    [{ baseUrl: 'x https://api.test' }, `${URL_EXPECTED}, got "x https://api.test"`],
    [{ ...BASE, algorithm: [] }, 'unknown option "algorithm"; did you mean "algorithms"?'],
    [{ ...BASE, proofMaxAgeSeconds: 601 }, `option "proofMaxAgeSeconds" must be ${AGE}, got 601`],
    ...[[], 'ES256', ['HS256'], ['ES256', 'HS256']].map((algorithms): [object, string] => [
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
    [{ possession: [{ confirmation: 'jkt' }] }, `${KINDS}, got an array of 1`],
    [{ possession: [mtls(), mtls()] }, `${KINDS}, got an array of 2`],
    [
      { possessionRequired: 'yes', possession: [mtls()] },
      'option "possessionRequired" must be true or false, got "yes"',
    ],
    [{ possessionRequired: true }, NEEDS],
    [{ possessionRequired: true, possession: [] }, NEEDS],
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
