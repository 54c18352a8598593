import { createHash, sign as signBytes } from 'node:crypto';
import { AuthError } from '../../../src/gate';
import { dpop } from '../../../src/gate/possession';
import type { DpopOptions, ReplayStore } from '../../../src/gate/possession';
import { BASE_URL as BASE, boundToken, callerKey, proof, publicJwk, thumbprint } from '../../support/dpop';
import type { ProofParts } from '../../support/dpop';
import { hmacSigner, NOW, signer } from '../../support/issuer';
import { newKey, testKey } from '../../support/keys';
import { boundRequest, outcomeOf } from './outcome';
import type { GateOfProofs } from './outcome';

const OWN = { token: boundToken(), bound: thumbprint(callerKey()) };

interface Sent extends DpopOptions {
  /** `null`: no DPoP header. */
  readonly proof?: string | null;
  readonly scheme?: string;
  readonly target?: string;
  readonly accessToken?: string;
  /** What the token names as its key. */
  readonly bound?: string;
  readonly gate?: Partial<GateOfProofs>;
}

/** Whether the proof of a request is accepted; else the reason, and what operators are told. */
function outcome(sent: Sent = {}): Promise<unknown> {
  const { proof: header = proof(), scheme = 'DPoP', target = '/v1/orders', gate, ...rest } = sent;
  const { accessToken = OWN.token, bound = OWN.bound, ...options } = rest;
  const headers = { authorization: `${scheme} x`, ...(header !== null && { dpop: header }) };
  const request = { method: 'GET', url: target, headers };
  const kind = dpop('baseUrl' in options ? options : { ...options, baseUrl: BASE });
  return outcomeOf(kind, boundRequest(request, { token: accessToken, bound }, gate));
}

/** RFC 9449 section 7.1, figure 13. */
const ACCESS_TOKEN = 'Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU';
const THUMBPRINT = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I';
const PROOF =
  'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA';

describe('a proof is accepted', () => {
  it.each(['ES256', 'ES384', 'EdDSA', 'Ed25519', 'PS256', 'RS256'])('by %s', async (alg) => {
    const key = testKey(alg, `caller ${alg}`);
    const accessToken = boundToken(key);
    expect(await outcome({ accessToken, bound: thumbprint(key), proof: proof({ key, accessToken }) })).toBe('accepted');
  });

  it.each<[string, ProofParts]>([
    ['typ in another case', { header: { typ: 'DPoP+JWT' } }],
    ['claims that are not known', { claims: { aud: 'x', sub: 'x', extra: { a: 1 } } }],
    ['exp and nbf', { claims: { exp: NOW + 300, nbf: NOW - 10 } }],
    ['an exp that has just passed', { claims: { exp: NOW - 9.999 } }],
    ['an nbf that is about to come', { claims: { nbf: NOW + 10 } }],
    ['the oldest iat', { claims: { iat: NOW - 69.999 } }],
    ['the latest iat', { claims: { iat: NOW + 10 } }],
    ['a jti of 512 characters', { claims: { jti: 'x'.repeat(512) } }],
  ])('with %s', async (_what, parts) => {
    expect(await outcome({ proof: proof(parts) })).toBe('accepted');
  });

  it('at the origin of the resource of the gate, where dpop() has no URL', async () => {
    expect(await outcome({ baseUrl: undefined, gate: { resource: `${BASE}/v1` } })).toBe('accepted');
  });

  it('as it is in RFC 9449 section 7.1, for its token and the key of section 6.1, once', async () => {
    const kind = dpop({ baseUrl: 'https://resource.example.org' });
    const request = { method: 'GET', url: '/protectedresource', headers: { authorization: 'DPoP x', dpop: PROOF } };
    const sent = boundRequest(request, { token: ACCESS_TOKEN, bound: THUMBPRINT }, { clock: () => 1_562_262_618_000 });
    expect(await outcomeOf(kind, sent)).toBe('accepted');
    expect(await outcomeOf(kind, sent)).toEqual(['invalid_dpop_proof', 'the proof was used before']);
  });

  it('again and again in a trial, where another gate decides', async () => {
    const kind = dpop({ baseUrl: BASE });
    const headers = { authorization: 'DPoP x', dpop: proof() };
    const trial = { ...boundRequest({ method: 'GET', url: '/v1/orders', headers }, OWN), isTrial: true };
    expect([await outcomeOf(kind, trial), await outcomeOf(kind, trial)]).toEqual(['accepted', 'accepted']);
  });
});

/** An RSA key of more bits than a proof may have, with a signature that is not computed. */
function withLargeKey(): Sent {
  const jwk = { e: 'AQAB', kty: 'RSA', n: Buffer.alloc(513, 0xff).toString('base64url') };
  const bound = createHash('sha256').update(JSON.stringify(jwk)).digest('base64url');
  return { bound, proof: proof({ header: { alg: 'RS256', jwk }, sign: () => Buffer.alloc(513) }) };
}

/** A token, with the proof of another one that begins with the same thousands of characters. */
function withProofOfTwin(): Sent {
  const ofNumber = (last: number): string => boundToken(callerKey(), { roles: 'r'.repeat(6_000), last });
  return { accessToken: ofNumber(1), proof: proof({ accessToken: ofNumber(2) }) };
}

const swapCase = (text: string): string =>
  text.replace(/[a-z]/i, (letter) => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()));
const NO_PROOF = 'the DPoP header is missing';
const OTHER_KEY = 'the key of the proof is not that of cnf.jkt';

describe('a proof is refused', () => {
  it.each<[what: string, parts: ProofParts, detail: string]>([
    ['another method', { method: 'POST' }, 'htm is not the method of the request'],
    ['a method in another case', { method: 'get' }, 'htm is not the method of the request'],
    [
      'another access token',
      { accessToken: boundToken(callerKey(), { jti: 'another' }) },
      'ath is not the hash of the access token',
    ],
    ['no ath', { claims: { ath: undefined } }, 'ath is missing or not a string'],
    ['an ath that is not a string', { claims: { ath: 1 } }, 'ath is missing or not a string'],
    ['no htm', { claims: { htm: undefined } }, 'htm is missing or not a string'],
    ['an htm that is a list', { claims: { htm: ['GET'] } }, 'htm is missing or not a string'],
    ['no htu', { claims: { htu: undefined } }, 'htu is missing or not a string'],
    ['no jti', { claims: { jti: undefined } }, 'jti is missing or not a string'],
    ['an empty jti', { claims: { jti: '' } }, 'jti is missing or not a string'],
    ['a jti of 513 characters', { claims: { jti: 'x'.repeat(513) } }, 'jti is longer than 512 characters'],
    ['no iat', { claims: { iat: undefined } }, 'iat is not a number'],
    ['an iat beyond all numbers', { payload: '{"jti":"x","htm":"GET","htu":"x","iat":1e400}' }, 'iat is not a number'],
    ['an iat that is a string', { claims: { iat: String(NOW) } }, 'iat is not a number'],
    ['an iat that is too old', { claims: { iat: NOW - 70 } }, 'iat is too old'],
    ['an iat to come', { claims: { iat: NOW + 10.001 } }, 'iat is in the future'],
    ['a nonce that is not a string', { claims: { nonce: 1 } }, 'nonce is missing or not a string'],
    ['an exp that has passed', { claims: { exp: NOW - 10 } }, 'exp has passed'],
    ['an nbf to come', { claims: { nbf: NOW + 10.001 } }, 'nbf is in the future'],
    ['an exp that is a string', { claims: { exp: `${NOW + 60}` } }, 'exp is not a number'],
    ['no typ', { header: { typ: undefined } }, 'header has no typ, expected dpop+jwt'],
    ['the typ of an access token', { header: { typ: 'at+jwt' } }, 'header typ is "at+jwt", expected dpop+jwt'],
    ['crit', { header: { crit: ['x'] } }, 'unsupported_critical_header'],
    ['alg none', { header: { alg: 'none' }, sign: () => Buffer.from('x') }, 'alg is "none"'],
    [
      'an HMAC with the public key',
      { header: { alg: 'HS256' }, sign: hmacSigner(JSON.stringify(publicJwk(callerKey()))) },
      'alg is "HS256", which needs a shared secret: have the issuer sign with a key pair',
    ],
    ['an algorithm that does not fit the key', { header: { alg: 'ES384' } }, 'alg does not fit the key'],
    ['no jwk', { header: { jwk: undefined } }, 'jwk: it is not an object'],
    ['a jwk that is a string', { header: { jwk: 'x' } }, 'jwk: it is not an object'],
    [
      'a private key',
      { header: { jwk: callerKey().privateKey.export({ format: 'jwk' }) } },
      'jwk: it is a private key',
    ],
    ['a secret key', { header: { jwk: { kty: 'oct', k: 'AAAA' } } }, 'jwk: its kty must be RSA, EC or OKP'],
    [
      'a key off its curve',
      { header: { jwk: { ...publicJwk(callerKey()), x: 'AAAA' } } },
      'jwk: its key material is broken',
    ],
    [
      'the key of the caller, signed with another',
      { sign: signer('ES256', testKey('ES256', 'another').privateKey) },
      'bad_signature',
    ],
    ['a DER signature', { sign: (input) => signBytes('sha256', input, callerKey().privateKey) }, 'bad_signature'],
  ])('with %s', async (_what, parts, detail) => {
    expect(await outcome({ proof: proof(parts) })).toEqual(['invalid_dpop_proof', detail]);
  });

  it.each<[what: string, sent: Sent, detail: unknown]>([
    ['that is missing', { proof: null }, NO_PROOF],
    ['that is empty', { proof: '' }, NO_PROOF],
    ['that is not a JWT', { proof: 'x.y' }, '2 parts instead of 3'],
    ['next to another one in one header', { proof: `${proof()}, ${proof()}` }, expect.stringMatching(/^5 parts/)],
    ['that is an access token', { proof: boundToken() }, 'header typ is "at+jwt", expected dpop+jwt'],
    ['with more than a proof', { proof: `${proof()}x` }, 'the signature is not base64url'],
    ['of a token that begins alike', withProofOfTwin(), 'ath is not the hash of the access token'],
    ['with a key of 4104 bits', withLargeKey(), 'jwk: its modulus has more than 4096 bits'],
  ])('%s', async (_what, sent, detail) => {
    expect(await outcome(sent)).toEqual(['invalid_dpop_proof', detail]);
  });

  it.each<[string, Sent]>([
    ['another key', { proof: proof({ key: newKey() }) }],
    [
      'another key, before its signature is computed',
      { proof: proof({ key: newKey(), sign: () => Buffer.from('x') }) },
    ],
    ['a key whose thumbprint differs in case only', { bound: swapCase(OWN.bound) }],
  ])('of %s: wrong_binding', async (_what, sent) => {
    expect(await outcome(sent)).toEqual(['wrong_binding', OTHER_KEY]);
  });

  it('with a token of the Bearer scheme', async () => {
    const detail = 'cnf.jkt is not proven: the token came with the Bearer scheme';
    expect(await outcome({ scheme: 'Bearer' })).toEqual(['sender_constrained', detail]);
  });
});

describe('a store of used proofs', () => {
  const DOWN = new Error('down');
  const throwing = (): never => {
    throw DOWN;
  };
  const rejecting = (error: Error) => (): Promise<never> => Promise.reject(error);
  const OTHER_REFUSAL = new AuthError('insufficient_scope');

  it.each<[string, () => unknown, unknown]>([
    ['throws is an outage', throwing, { reason: 'replay_store_unavailable', cause: DOWN }],
    ['rejects is an outage', rejecting(DOWN), { reason: 'replay_store_unavailable', cause: DOWN }],
    [
      'rejects with a refusal of another kind is an outage',
      rejecting(OTHER_REFUSAL),
      { reason: 'replay_store_unavailable', cause: OTHER_REFUSAL },
    ],
    ['has no room for the client', rejecting(new AuthError('too_many_proofs')), { reason: 'too_many_proofs' }],
    ['resolves to anything but true has the proof refused', () => 'OK', { reason: 'invalid_dpop_proof' }],
  ])('that %s', async (_what, remember, expected) => {
    const kind = dpop({ baseUrl: BASE, replayStore: { remember } as ReplayStore });
    const headers = { authorization: 'DPoP x', dpop: proof() };
    const sent = boundRequest({ method: 'GET', url: '/v1/orders', headers }, OWN);
    await expect(kind.verify(sent)).rejects.toMatchObject(expected as object);
  });
});

/** The outcome of a proof for this URL, at this target. */
const outcomeFor = (url: string, target: string, baseUrl = BASE): Promise<unknown> =>
  outcome({ proof: proof({ url }), target, baseUrl });
const NO_HTU = ['invalid_dpop_proof', 'htu is missing or not a string'];
const NOT_THE_URL = ['invalid_dpop_proof', expect.stringMatching(/^htu is not /)];

describe('htu: any spelling of the URL of the request', () => {
  it.each([
    ['https://api.test/orders?since=1#x', BASE, '/orders'],
    ['https://api.test/orders/?x', BASE, '/orders/'],
    ['https://api.test', BASE, '/'],
    ['HTTPS://USER:PASS@API.TEST:443/a/../Orders/./b', BASE, '/Orders/b?x=1'],
    ['http://api.test:80/x', 'http://api.test', '/x'],
    ['https://api.test:8443/x', 'https://api.test:8443', '/x'],
    ['http://127.0.0.1:4000/x', 'http://127.0.0.1:4000', '/x'],
    ['http://[2001:DB8::1]:3000/x', 'http://[2001:db8::1]:3000', '/x'],
    ['https://b\u00fccher.test/x', 'https://xn--bcher-kva.test', '/x'],
    ['https://api.test./x', 'https://api.test.', '/x'],
    ['https://api.test/%7euser/a%2fb/%e2%82%ac', BASE, '/~user/a%2Fb/%E2%82%AC'],
    ['https://api.test/a%2Fb', BASE, '/a%2fb'],
    ['https://api.test/\u20ac', BASE, '/%e2%82%ac'],
    ['https://api.test/%7Euser', BASE, '/%7euser'],
    ['https://api.test/a/%2e%2e/b', BASE, '/b'],
    ['https://api.test/a\\b', BASE, '/a/b'],
    ['https://api.test/100%', BASE, '/100%'],
    ['https://api.test/shop/orders', 'https://api.test/shop', '/orders'],
    ['https://api.test//evil.test/x', BASE, '//evil.test/x'],
    ['https://api.test/https://evil.test/x', BASE, '/https://evil.test/x'],
    ['https://api.test/a..b/...', BASE, '/a..b/...'],
    ['https://api.test/{x}|"', BASE, '/{x}|"'],
  ])('%s at %s for %s', async (htu, baseUrl, target) => {
    expect(await outcomeFor(htu, target, baseUrl)).toBe('accepted');
  });
});

describe('htu: not the URL of the request', () => {
  it.each([
    ['', '/orders'],
    ['/orders', '/orders'],
    ['api.test/orders', '/orders'],
    [':://x', '/orders'],
    ['ftp://api.test/orders', '/orders'],
    ['javascript:x', '/orders'],
    ['https://api.test:999999/orders', '/orders'],
    ['https://[::1/orders', '/orders'],
    ['http://api.test/orders', '/orders'],
    ['https://other.test/orders', '/orders'],
    ['https://api.test:8443/orders', '/orders'],
    ['https://api.test/Orders', '/orders'],
    ['https://api.test/orders/', '/orders'],
    ['https://api.test/a/b', '/a%2Fb'],
    ['https://api.test/a', '//a'],
  ])('%p for %p', async (htu, target) => {
    expect(await outcomeFor(htu, target)).toEqual(htu === '' ? NO_HTU : NOT_THE_URL);
  });

  // Express matches the characters that were sent, so these are other paths than /a/b.
  it.each(['/a/%62', '/%61/b', '/x/../a/b', '/x/%2E%2e/a/b', '/./a/b', '/a/b/.', '/a\\b', '/x\\..\\a/b', '/a/b#'])(
    'the proof for /a/b is none for the target %p',
    async (target) => {
      expect(await outcomeFor('https://api.test/a/b', target)).toEqual(NOT_THE_URL);
    },
  );

  it.each(['*', '', 'http://api.test/a', '@evil.test/', '/\t', '/\u00e9', '/\u007f', '/ ', '/..', '/\\'])(
    'nothing is the URL of the target %p',
    async (target) => {
      expect(await outcomeFor(BASE + target, target)).toEqual(NOT_THE_URL);
      expect(await outcomeFor(target || ' ', target)).toEqual(NOT_THE_URL);
      expect(await outcomeFor('x', target)).toEqual(NOT_THE_URL);
    },
  );
});

const TOKEN = boundToken();
it.each([
  ['a token', `/v1/${TOKEN}?access_token=${TOKEN}`, `/v1/[${TOKEN.length}]`],
  ['characters that move the cursor', '/v1/a\u009b2J\u0085forged', '/v1/a\\u009b2J\\u0085forged'],
  ['another origin', 'https://other.test/v1/orders', '/v1/orders'],
])('htu: the log line shows a path with %s as it may be shown', async (_what, target, shown) => {
  expect(await outcomeFor(BASE, target)).toEqual(['invalid_dpop_proof', `htu is not ${BASE}${shown}`]);
});
