import { createHash, X509Certificate } from 'node:crypto';
import { certificateReader, MTLS_OPTION } from '../../../src/token/possession/possession';
import type { TokenRequest } from '../../../src/token/bearer';
import certificates from '../../support/certificates.json';
import type { AuthError } from '../../../src';
import { DpopVerifier } from '../../../src/token/possession/dpop';
import { SignatureVerifier } from '../../../src/token/signature';
import { boundToken, callerKey, proof, thumbprint } from '../../support/dpop';
import { NOW_MS } from '../../support/issuer';
import { recordingLogger } from '../../support/log';

const DER = new X509Certificate(certificates['till-1'].certificate).raw;
const THUMBPRINT = createHash('sha256').update(DER).digest('base64url');
const HEADER = 'client-cert';
const readMtls = (options: object) => MTLS_OPTION.read(options, { factory: 'authenticate', name: 'mtls' })!;
const FORWARDED = { [HEADER]: `:${DER.toString('base64')}:` };

const from = (remoteAddress: string | undefined, headers: TokenRequest['headers'] = FORWARDED) => ({
  headers,
  socket: { remoteAddress },
});

describe('a forwarded certificate', () => {
  const read = certificateReader(
    readMtls({ header: 'Client-Cert', trustedProxies: ['10.0.0.0/8', 'fd00::/8', '192.0.2.1'] }),
  );

  it.each(['10.1.2.3', '192.0.2.1', '::ffff:10.1.2.3', '::FFFF:192.0.2.1', '::ffff:a01:203', 'fd12::1'])(
    'is read from %s',
    (address) => {
      expect(read(from(address))).toBe(THUMBPRINT);
    },
  );

  it.each(['11.1.2.3', '192.0.2.2', '::ffff:11.1.2.3', '::1', 'fe80::1', 'x::ffff:10.1.2.3', '', undefined])(
    'is not read from %p',
    (address) => {
      expect(read(from(address))).toBeUndefined();
    },
  );

  it('is not read from a request without a connection', () => {
    expect(read({ headers: FORWARDED })).toBeUndefined();
  });

  it.each<[string, TokenRequest['headers']]>([
    ['no header', {}],
    ['a list', { [HEADER]: [FORWARDED[HEADER] ?? ''] }],
    ['a header of another object', Object.create(FORWARDED) as TokenRequest['headers']],
    ['DER and something else', { [HEADER]: `${DER.toString('base64')} x` }],
    ['PEM and something else', { [HEADER]: encodeURIComponent(`${certificates['till-1'].certificate}x`) }],
    ['more characters than Node accepts', { [HEADER]: `:${'A'.repeat(16_384)}:` }],
  ])('is none: %s', (_what, headers) => {
    expect(read(from('10.1.2.3', headers))).toBeUndefined();
    expect(read(from('10.1.2.3', headers))).toBeUndefined();
  });
});

describe('how proxies write a certificate', () => {
  const OTHER_DER = new X509Certificate(certificates['till-2'].certificate).raw;
  const [PEM, OTHER_PEM] = [certificates['till-1'].certificate, certificates['till-2'].certificate];
  const [BASE64, OTHER_BASE64] = [DER.toString('base64'), OTHER_DER.toString('base64')];
  const HASH = createHash('sha256').update(DER).digest('hex');
  const OTHER_HASH = createHash('sha256').update(OTHER_DER).digest('hex');
  const SUBJECT = 'Subject="/C=US/O=\\"A, B\\"; Hash=x/CN=till"';
  const [ALB, ALB_LEAF, TRAEFIK, ENVOY] = [
    'X-Amzn-Mtls-Clientcert',
    'X-Amzn-Mtls-Clientcert-Leaf',
    'X-Forwarded-Tls-Client-Cert',
    'X-Forwarded-Client-Cert',
  ];
  const readFrom = (header: string, value: string): string | undefined =>
    certificateReader(readMtls({ header, trustedProxies: ['10.0.0.0/8'] }))(
      from('10.1.2.3', { [header.toLowerCase()]: value }),
    );

  it.each<[string, string, string]>([
    ['Apache, line breaks as blanks', 'SSL_CLIENT_CERT', `${PEM.trim().replaceAll('\n', ' ')} `],
    ['nginx before 1.13.5, unfolded by another proxy', 'X-Client-Certificate', PEM.trim().replaceAll('\n', '\t')],
    ['ALB, leaf', ALB_LEAF, encodeURI(PEM)],
    ['ALB, chain', ALB, encodeURI(PEM + OTHER_PEM)],
    ['ALB, chain of one', ALB, encodeURI(PEM)],
    ['Traefik', TRAEFIK, BASE64],
    ['Traefik, chain', TRAEFIK, `${BASE64},${OTHER_BASE64}`],
    ['Traefik 2, chain', TRAEFIK, `${encodeURIComponent(BASE64)},${encodeURIComponent(OTHER_BASE64)}`],
    ['Envoy, hash alone', ENVOY, `Hash=${HASH}`],
    ['Envoy, as it is by default', ENVOY, `By=spiffe://a/b;Hash=${HASH};${SUBJECT};URI=spiffe://a/till;DNS=a;DNS=b`],
    ['Envoy, names in another case', ENVOY, `by=;hash=${HASH.toUpperCase()}`],
    ['Envoy, certificate in quotes', ENVOY, `Hash=${HASH};Cert="${encodeURIComponent(PEM)}";${SUBJECT}`],
    ['Envoy, certificate alone', ENVOY, `Cert=${encodeURIComponent(PEM)}`],
    ['Envoy, with the chain', ENVOY, `Hash=${HASH};Chain="${encodeURIComponent(PEM + OTHER_PEM)}"`],
  ])('%s', (_proxy, header, value) => {
    expect(readFrom(header, value)).toBe(THUMBPRINT);
  });

  it('is compared as a whole with what was read before', () => {
    const read = certificateReader(readMtls({ header: 'x-cert', trustedProxies: ['10.0.0.0/8'] }));
    const readPem = (pem: string): string | undefined => read(from('10.1.2.3', { 'x-cert': encodeURIComponent(pem) }));
    expect(readPem(PEM)).toBe(THUMBPRINT);
    expect(readPem(`${PEM}x`)).toBeUndefined();
    expect(readPem(PEM)).toBe(THUMBPRINT);
    expect(readPem(OTHER_PEM)).not.toBe(THUMBPRINT);
  });

  it.each<[string, string, string]>([
    ['a chain where there is none', ALB_LEAF, encodeURI(PEM + OTHER_PEM)],
    ['a list where there is none', 'X-Client-Certificate', `${BASE64},${OTHER_BASE64}`],
    ['two chains in two headers', TRAEFIK, `${BASE64}, ${OTHER_BASE64}`],
    ['two chains in two headers, in PEM', ALB, `${encodeURI(PEM)}, ${encodeURI(OTHER_PEM)}`],
    ['a chain that ends early', ALB, encodeURI(PEM + OTHER_PEM.slice(0, 100))],
    ['a chain with something else in it', ALB, encodeURI(`${PEM}x${OTHER_PEM}`)],
    ['a chain with an empty member', TRAEFIK, `${BASE64},`],
    ['a chain that begins with an empty member', TRAEFIK, `,${BASE64}`],
    ['Apache without a certificate', 'SSL_CLIENT_CERT', '(null)'],
    ['a byte sequence that does not end', 'Client-Cert', `:${BASE64}`],
    ['a colon', 'Client-Cert', ':'],
    ['the elements of two Envoys', ENVOY, `Hash=${OTHER_HASH},Hash=${HASH}`],
    ['the same, with certificates', ENVOY, `Cert="${encodeURIComponent(OTHER_PEM)}",Hash=${HASH}`],
    ['a name that looks like a hash', ENVOY, `Hash=${OTHER_HASH};URI=x;Hash=${HASH}`],
    ['a name that looks like a hash, in another case', ENVOY, `Hash=${OTHER_HASH};URI=x;hash=${HASH}`],
    ['a hash and another certificate', ENVOY, `Hash=${HASH};Cert="${encodeURIComponent(OTHER_PEM)}"`],
    ['two certificates for Envoy', ENVOY, `Cert="${encodeURIComponent(PEM + OTHER_PEM)}"`],
    ['a hash of other length', ENVOY, `Hash=${HASH}00`],
    ['an empty hash', ENVOY, 'Hash='],
    ['a broken hash next to the certificate', ENVOY, `Hash=x;Cert="${encodeURIComponent(PEM)}"`],
    ['quotes that do not end', ENVOY, `Hash=${HASH};Subject="/CN=a`],
    ['quotes that end early', ENVOY, `Hash=${HASH};Subject="a"b"`],
    ['no pairs', ENVOY, BASE64],
    ['no certificate in the pairs', ENVOY, `By=a;${SUBJECT}`],
    ['something before the pairs', ENVOY, `"x";Hash=${HASH}`],
    ['a hash inside a subject', ENVOY, `Subject="Hash=${HASH};"`],
    ['nothing', ENVOY, ''],
  ])('none is read from %s', (_what, header, value) => {
    expect(readFrom(header, value)).toBeUndefined();
  });
});

describe('the certificate of the connection', () => {
  const read = certificateReader(readMtls({}));

  it.each<[string, TokenRequest]>([
    ['no connection', { headers: FORWARDED }],
    ['one without TLS', from('10.1.2.3')],
    ['TLS without a certificate', { headers: {}, socket: { getPeerX509Certificate: () => undefined } }],
  ])('is none: %s', (_what, request) => {
    expect(read(request)).toBeUndefined();
  });

  it('is read once', () => {
    const getPeerX509Certificate = jest.fn(() => new X509Certificate(certificates['till-1'].certificate));
    const request = { headers: {}, socket: { getPeerX509Certificate } };
    expect([read(request), read(request)]).toEqual([THUMBPRINT, THUMBPRINT]);
    expect(getPeerX509Certificate).toHaveBeenCalledTimes(1);
  });
});

describe('DPoP', () => {
  const verifierAt = (baseUrl: string, nowMs = NOW_MS): DpopVerifier => {
    const settings = {
      baseUrl,
      required: false,
      proofMaxAgeSeconds: 60,
      nonce: false as const,
      replayStore: undefined,
    };
    return new DpopVerifier(
      { ...settings, algorithms: ['ES256'] },
      new SignatureVerifier(),
      () => nowMs,
      0,
      recordingLogger(),
    );
  };

  /** RFC 9449 section 7.1, figure 13. */
  const ACCESS_TOKEN = 'Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU';
  const THUMBPRINT = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I';
  const PROOF =
    'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA';

  /** Whether the proof of a request is accepted; why not, for operators. */
  async function outcome(sent: string, target: string, baseUrl = BASE): Promise<unknown> {
    const request = { method: 'GET', url: target, headers: { dpop: sent } };
    try {
      await verifierAt(baseUrl).verify(request, boundToken(), thumbprint(callerKey()), { client: 'pos-17' });
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
    const request = { method: 'GET', url: '/protectedresource', headers: { dpop: PROOF } };
    expect(await verifier.verify(request, ACCESS_TOKEN, THUMBPRINT, { client: 'pos-17' })).toBeUndefined();
    await expect(verifier.verify(request, ACCESS_TOKEN, THUMBPRINT, { client: 'pos-17' })).rejects.toMatchObject({
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

    it('two URLs that are none are not equal', async () => {
      expect(await outcome(urlProof('x'), '/', 'x')).toEqual(NOT_THE_URL);
    });
  });
});
