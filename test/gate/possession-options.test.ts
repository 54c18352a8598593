import { authenticate } from '../../src';
import { ALGORITHMS as KNOWN } from '../../src/token/signature';
import { describe as named } from '../../src/core/options';
import { AUDIENCE, ISSUER } from '../support/issuer';
import { jwks, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

const make = (options: object): unknown =>
  authenticate({ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), logger: recordingLogger(), ...options });
const BASE = { baseUrl: 'https://api.test' };
const SECRET = 'a string of at least 32 characters';
const URL_EXPECTED =
  'option "dpop.baseUrl" must be the public http(s) URL of the root of the app, as clients have it (or set "resource")';

describe('the options dpop and mtls', () => {
  it.each<[object, string]>([
    [{ dpop: true }, 'option "dpop" must be an object, got true'],
    [{ dpop: {} }, `${URL_EXPECTED}, got undefined`],
    [{ dpop: { baseUrl: 'api.test' } }, `${URL_EXPECTED}, got "api.test"`],
    [{ dpop: { baseUrl: 'https://api.test/?x' } }, `${URL_EXPECTED}, got "https://api.test/"`],
    [{ dpop: { baseUrl: 'https://a:b@api.test' } }, `${URL_EXPECTED}, got "https://api.test/"`],
    [{ dpop: { ...BASE, require: true } }, 'unknown option "dpop.require"; did you mean "required"?'],
    [{ dpop: { ...BASE, required: 'yes' } }, 'option "dpop.required" must be true or false, got "yes"'],
    [
      { dpop: { ...BASE, algorithms: ['HS256'] } },
      'option "dpop.algorithms" must be an array with some of ' +
        'RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, got an array of 1',
    ],
    [
      { dpop: { ...BASE, proofMaxAgeSeconds: 601 } },
      'option "dpop.proofMaxAgeSeconds" must be a number of seconds from 1 to 600, got 601',
    ],
    ...[[], 'ES256', ['ES256', 'HS256']].map((algorithms): [object, string] => [
      { dpop: { ...BASE, algorithms } },
      `option "dpop.algorithms" must be an array with some of ${KNOWN.join(', ')}, got ${named(algorithms)}`,
    ]),
    [
      { dpop: { ...BASE, nonce: { secret: Array.from({ length: 40 }, () => 'x') } } },
      `option "dpop.nonce.secret" must be ${SECRET}`,
    ],
    [{ dpop: { baseUrl: 'x https://api.test' } }, `${URL_EXPECTED}, got "x https://api.test"`],
    [{ dpop: { ...BASE, nonce: 'x' } }, 'option "dpop.nonce" must be an object, got "x"'],
    [{ dpop: { ...BASE, nonce: { key: 'x' } } }, 'unknown option "dpop.nonce.key"; known are secret'],
    [
      { dpop: { ...BASE, nonce: { secret: 'only thirty-one characters long' } } },
      'option "dpop.nonce.secret" must be a string of at least 32 characters',
    ],
    [
      { dpop: { ...BASE, replayStore: {} } },
      'option "dpop.replayStore" must be an object with the method remember, got an object',
    ],
    [
      { dpop: { ...BASE, replayStore: null } },
      'option "dpop.replayStore" must be an object with the method remember, got null',
    ],
    ...[
      { dpop: BASE },
      { mtls: {} },
      {},
      { dpop: { ...BASE, required: true }, mtls: {} },
      { dpop: BASE, mtls: { required: true } },
    ].map((options): [object, string] => [
      { binding: 'any', ...options },
      'option "binding" needs "dpop" and "mtls", neither of them with "required": one of both is enough',
    ]),
    [{ binding: 'all', dpop: BASE, mtls: {} }, 'option "binding" must be one of any, got "all"'],
    [{ mtls: [] }, 'option "mtls" must be an object, got an empty array'],
    [{ mtls: { requried: true } }, 'unknown option "mtls.requried"; did you mean "required"?'],
    [{ mtls: { header: 'client cert' } }, 'option "mtls.header" must be the name of a header, got "client cert"'],
    [{ mtls: { header: 'x' } }, 'options "mtls.header" and "mtls.trustedProxies" must be given together'],
    [{ mtls: { trustedProxies: ['::1'] } }, 'options "mtls.header" and "mtls.trustedProxies" must be given together'],
    ...[['proxy.test'], ['10.0.0.0/33'], ['::/129'], ['10.0.0.0/8/8'], ['10.0.0.0/'], [7], '10.0.0.0/8'].map(
      (trustedProxies): [object, string] => [
        { mtls: { header: 'x', trustedProxies } },
        `option "mtls.trustedProxies" must be an array of IP addresses and ranges such as 10.0.0.0/8, got ${
          typeof trustedProxies === 'string' ? '"10.0.0.0/8"' : 'an array of 1'
        }`,
      ],
    ),
  ])('%j is refused', (options, message) => {
    expect(() => make(options)).toThrow(new TypeError(`authenticate(): ${message}`));
  });

  it.each<[object]>([
    [{ dpop: BASE, mtls: {} }],
    [{ dpop: BASE, mtls: {}, binding: 'any' }],
    [{ dpop: BASE, binding: undefined }],
    [{ dpop: { baseUrl: 'http://localhost:4000/shop/' } }],
    [{ dpop: {}, resource: 'https://api.test/v1' }],
    [{ dpop: { baseUrl: 'https://api.test//', nonce: { secret: 'exactly thirty-two characters...' } } }],
    [{ dpop: { ...BASE, nonce: false, algorithms: ['ES256'], proofMaxAgeSeconds: 1 } }],
    [{ mtls: { header: 'Client-Cert', trustedProxies: ['10.0.0.0/8', 'fd00::/8', '192.0.2.1'] } }],
  ])('%j is accepted', (options) => {
    expect(() => make(options)).not.toThrow();
  });
});
