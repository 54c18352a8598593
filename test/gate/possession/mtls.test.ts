import { createHash, X509Certificate } from 'node:crypto';
import type { AuthError } from '../../../src/gate';
import { mtls } from '../../../src/gate/possession';
import type { MtlsOptions } from '../../../src/gate/possession';
import type { TokenRequest } from '../../../src/gate/token/bearer';
import certificates from '../../support/certificates.json';
import { certificateBehind } from '../../support/mtls-recipes';
import { boundRequest } from './outcome';

const [PEM, OTHER_PEM] = [certificates['till-1'].certificate, certificates['till-2'].certificate];
const [DER, OTHER_DER] = [new X509Certificate(PEM).raw, new X509Certificate(OTHER_PEM).raw];
const [BASE64, OTHER_BASE64] = [DER.toString('base64'), OTHER_DER.toString('base64')];
const THUMBPRINT = createHash('sha256').update(DER).digest('base64url');

/** Whether a request proves the certificate of till-1; why not. */
function outcome(options: MtlsOptions | undefined, request: TokenRequest, kind = mtls(options)): unknown {
  try {
    void kind.verify(boundRequest(request, { bound: THUMBPRINT }));
    return 'proven';
  } catch (error) {
    return (error as AuthError).reason;
  }
}
const returned = (value: unknown): unknown => outcome({ certificate: () => value as string }, { headers: {} });

describe('what the function "certificate" returns', () => {
  it.each<[string, unknown]>([
    ['an X509Certificate', new X509Certificate(PEM)],
    ['PEM', PEM],
    ['PEM on one line', PEM.replaceAll('\n', ' ')],
    ['base64 of DER', BASE64],
  ])('proves it: %s', (_form, value) => {
    expect(returned(value)).toBe('proven');
  });

  it('is another certificate', () => {
    expect([returned(OTHER_PEM), returned(new X509Certificate(OTHER_PEM)), returned(OTHER_BASE64)]).toEqual(
      Array<string>(3).fill('wrong_binding'),
    );
  });

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['nothing', ''],
    ['null', null],
    ['a promise', Promise.resolve(PEM)],
    ['bytes', DER],
    ['two certificates', PEM + OTHER_PEM],
    ['a certificate and something else', `${PEM}x`],
    ['a list', `${BASE64},${OTHER_BASE64}`],
    ['DER and something else', `${BASE64} x`],
    ['bytes that are not a certificate', Buffer.from('x').toString('base64')],
    ['more characters than Node accepts in headers', `${BASE64}${'A'.repeat(16_384)}`],
  ])('is none: %s', (_what, value) => {
    expect([returned(value), returned(value)]).toEqual(['sender_constrained', 'sender_constrained']);
  });

  it.each<[string, () => unknown]>([
    ['throws, as for a header that a caller made up', () => decodeURIComponent('%')],
    ['is async and rejects', () => Promise.reject(new Error('down'))],
  ])('is none where it %s', (_what, certificate) => {
    expect(outcome({ certificate: certificate as () => string }, { headers: {} })).toBe('sender_constrained');
  });

  it('is compared as a whole with what was read before', () => {
    const options = { certificate: ({ headers }: TokenRequest) => String(headers['x-cert']) };
    const kind = mtls(options);
    const outcomes = [PEM, `${PEM}x`, PEM, OTHER_PEM].map((cert) =>
      outcome(options, { headers: { 'x-cert': cert } }, kind),
    );
    expect(outcomes).toEqual(['proven', 'sender_constrained', 'proven', 'wrong_binding']);
  });
});

describe('the recipe of each proxy', () => {
  const HASH = createHash('sha256').update(DER).digest('hex');
  const ENVOY = 'x-forwarded-client-cert';
  const [ALB, ALB_LEAF] = ['x-amzn-mtls-clientcert', 'x-amzn-mtls-clientcert-leaf'];
  const TRAEFIK = 'x-forwarded-tls-client-cert';
  const proven = (proxy: string, header: string, value: string): unknown =>
    outcome({ certificate: certificateBehind(proxy) }, { headers: { [header]: value } });

  it.each<[string, string, string, string]>([
    ['nginx', 'nginx', 'x-client-certificate', encodeURIComponent(PEM)],
    ['nginx, + and / as they are', 'nginx', 'x-client-certificate', encodeURI(PEM)],
    ['nginx before 1.13.5, unfolded by a proxy', 'nginx', 'x-client-certificate', PEM.trim().replaceAll('\n', '\t')],
    ['Apache, line breaks as blanks', 'apache', 'ssl_client_cert', `${PEM.trim().replaceAll('\n', ' ')} `],
    ['ALB, leaf', 'awsVerify', ALB_LEAF, encodeURI(PEM)],
    ['ALB, chain', 'awsPassthrough', ALB, encodeURI(PEM + OTHER_PEM)],
    ['ALB, chain of one', 'awsPassthrough', ALB, encodeURI(PEM)],
    ['Traefik', 'traefik', TRAEFIK, BASE64],
    ['Traefik, chain', 'traefik', TRAEFIK, `${BASE64},${OTHER_BASE64}`],
    ['Traefik 2, chain', 'traefik', TRAEFIK, `${encodeURIComponent(BASE64)},${encodeURIComponent(OTHER_BASE64)}`],
    ['HAProxy', 'haproxy', 'x-client-certificate', BASE64],
    ['RFC 9440', 'rfc9440', 'client-cert', `:${BASE64}:`],
    ['Envoy', 'envoy', ENVOY, `Hash=${HASH};Cert="${encodeURIComponent(PEM)}"`],
    ['Envoy, with its own name', 'envoy', ENVOY, `By=spiffe://a/b;Hash=${HASH};Cert="${encodeURIComponent(PEM)}"`],
  ])('finds the certificate: %s', (_what, proxy, header, value) => {
    expect(proven(proxy, header, value)).toBe('proven');
  });

  it.each<[string, string, string, string]>([
    ['no header', 'nginx', 'x', 'x'],
    ['broken percent-encoding', 'nginx', 'x-client-certificate', '%-----BEGIN CERTIFICATE-----'],
    ['a chain where there is none', 'awsVerify', ALB_LEAF, encodeURI(PEM + OTHER_PEM)],
    ['a list where there is none', 'haproxy', 'x-client-certificate', `${BASE64},${OTHER_BASE64}`],
    ['two headers in PEM', 'nginx', 'x-client-certificate', `${encodeURIComponent(PEM)}, ${encodeURIComponent(PEM)}`],
    ['Apache without a certificate', 'apache', 'ssl_client_cert', '(null)'],
    ['a byte sequence that does not end', 'rfc9440', 'client-cert', `:${BASE64}`],
    ['two byte sequences', 'rfc9440', 'client-cert', `:${BASE64}:, :${BASE64}:`],
    ['a colon', 'rfc9440', 'client-cert', ':'],
    ['a chain that begins with an empty member', 'traefik', TRAEFIK, `,${BASE64}`],
    ['the elements of two Envoys', 'envoy', ENVOY, `Hash=${HASH},Hash=${HASH};Cert="${encodeURIComponent(PEM)}"`],
    ['the same, with certificates', 'envoy', ENVOY, `Hash=${HASH};Cert="${encodeURIComponent(PEM)}",Hash=${HASH}`],
    ['two certificates for Envoy', 'envoy', ENVOY, `Hash=${HASH};Cert="${encodeURIComponent(PEM + OTHER_PEM)}"`],
    ['quotes that end early', 'envoy', ENVOY, `Hash=${HASH};Cert="a"${encodeURIComponent(PEM)}"`],
    ['a certificate inside a subject', 'envoy', ENVOY, `Subject="Hash=${HASH};Cert=${encodeURIComponent(PEM)}"`],
    ['no pairs', 'envoy', ENVOY, BASE64],
    ['nothing', 'envoy', ENVOY, ''],
  ])('finds none in %s', (_what, proxy, header, value) => {
    expect(proven(proxy, header, value)).toBe('sender_constrained');
  });
});

describe('the certificate of the connection', () => {
  it.each<[string, TokenRequest]>([
    ['no connection', { headers: { 'client-cert': `:${BASE64}:` } }],
    ['one without TLS', { headers: {}, socket: { remoteAddress: '10.1.2.3' } }],
    ['TLS without a certificate', { headers: {}, socket: { getPeerX509Certificate: () => undefined } }],
  ])('is none: %s', (_what, request) => {
    expect(outcome(undefined, request)).toBe('sender_constrained');
  });

  it('is read once', () => {
    const getPeerX509Certificate = jest.fn(() => new X509Certificate(PEM));
    const request = { headers: {}, socket: { getPeerX509Certificate } };
    expect([outcome(undefined, request), outcome(undefined, request)]).toEqual(['proven', 'proven']);
    expect(getPeerX509Certificate).toHaveBeenCalledTimes(1);
  });
});
