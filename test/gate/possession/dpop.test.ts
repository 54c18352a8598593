import type { AuthError } from '../../../src/gate';
import { silentLogger } from '../../../src/gate/core/logger';
import { dpop } from '../../../src/gate/possession';
import { SignatureVerifier } from '../../../src/gate/token/signature';
import type { TokenRequest } from '../../../src/gate/token/bearer';
import { boundToken, callerKey, proof, thumbprint } from '../../support/dpop';
import { NOW_MS } from '../../support/issuer';

/** Checks the proofs for an API at this URL. */
function verifierAt(baseUrl: string, nowMs = NOW_MS) {
  const kind = dpop({ baseUrl, algorithms: ['ES256'] });
  const gate = {
    resource: undefined,
    clock: () => nowMs,
    clockToleranceMs: 0,
    signatures: new SignatureVerifier(),
    logger: silentLogger,
  };
  return {
    verify: async (request: TokenRequest, token: string, bound: string) =>
      kind.verify({ request, token, bound, caller: { client: 'pos-17' }, isTrial: false, gate }),
  };
}

/** RFC 9449 section 7.1, figure 13. */
const ACCESS_TOKEN = 'Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU';
const THUMBPRINT = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I';
const PROOF =
  'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA';

/** Whether the proof of a request is accepted; why not, for operators. */
async function outcome(sent: string, target: string, baseUrl = BASE): Promise<unknown> {
  const request = { method: 'GET', url: target, headers: { authorization: 'DPoP x', dpop: sent } };
  try {
    await verifierAt(baseUrl).verify(request, boundToken(), thumbprint(callerKey()));
    return 'accepted';
  } catch (error) {
    const { reason, privateDetail } = error as AuthError;
    return [reason, privateDetail];
  }
}

const BASE = 'https://api.test';

it('an iat beyond all numbers is none', async () => {
  const infinite = proof({ payload: `{"jti":"x","htm":"GET","htu":"x","iat":1e400}` });
  expect(await outcome(infinite, '/x')).toEqual(['invalid_dpop_proof', 'iat is not a number']);
});

it('the proof of RFC 9449 section 7.1 is accepted, for its token and the key of section 6.1', async () => {
  const verifier = verifierAt('https://resource.example.org', 1_562_262_618_000);
  const request = { method: 'GET', url: '/protectedresource', headers: { authorization: 'DPoP x', dpop: PROOF } };
  expect(await verifier.verify(request, ACCESS_TOKEN, THUMBPRINT)).toBeUndefined();
  await expect(verifier.verify(request, ACCESS_TOKEN, THUMBPRINT)).rejects.toMatchObject({
    privateDetail: 'the proof was used before',
  });
});

const urlProof = (url: string): string => proof({ url });
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
    expect(await outcome(urlProof(htu), target, baseUrl)).toBe('accepted');
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
    expect(await outcome(urlProof(htu), target)).toEqual(htu === '' ? NO_HTU : NOT_THE_URL);
  });

  // Express matches the characters that were sent, so these are other paths than /a/b.
  it.each(['/a/%62', '/%61/b', '/x/../a/b', '/x/%2E%2e/a/b', '/./a/b', '/a/b/.', '/a\\b', '/x\\..\\a/b', '/a/b#'])(
    'the proof for /a/b is none for the target %p',
    async (target) => {
      expect(await outcome(urlProof('https://api.test/a/b'), target)).toEqual(NOT_THE_URL);
    },
  );

  it.each(['*', '', 'http://api.test/a', '@evil.test/', '/\t', '/\u00e9', '/\u007f', '/ ', '/..', '/\\'])(
    'nothing is the URL of the target %p',
    async (target) => {
      expect(await outcome(urlProof(BASE + target), target)).toEqual(NOT_THE_URL);
      expect(await outcome(urlProof(target || ' '), target)).toEqual(NOT_THE_URL);
      expect(await outcome(urlProof('x'), target)).toEqual(NOT_THE_URL);
    },
  );
});

const TOKEN = boundToken();
it.each([
  ['a token', `/v1/${TOKEN}?access_token=${TOKEN}`, `/v1/[${TOKEN.length}]`],
  ['characters that move the cursor', '/v1/a\u009b2J\u0085forged', '/v1/a\\u009b2J\\u0085forged'],
  ['another origin', 'https://other.test/v1/orders', '/v1/orders'],
])('htu: the log line shows a path with %s as it may be shown', async (_what, target, shown) => {
  expect(await outcome(urlProof(BASE), target)).toEqual(['invalid_dpop_proof', `htu is not ${BASE}${shown}`]);
});
