import { createHash, X509Certificate } from 'node:crypto';
import { certificateReader, readMtls } from '../../../src/token/possession/client-certificate';
import type { PossessionRequest } from '../../../src/token/possession/request';
import certificates from '../../support/certificates.json';

const DER = new X509Certificate(certificates['till-1'].certificate).raw;
const THUMBPRINT = createHash('sha256').update(DER).digest('base64url');
const HEADER = 'client-cert';
const FORWARDED = { [HEADER]: `:${DER.toString('base64')}:` };

const from = (remoteAddress: string | undefined, headers: PossessionRequest['headers'] = FORWARDED) => ({
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

  it.each<[string, PossessionRequest['headers']]>([
    ['no header', {}],
    ['a list', { [HEADER]: [FORWARDED[HEADER] ?? ''] }],
    ['a header of another object', Object.create(FORWARDED) as PossessionRequest['headers']],
    ['DER and something else', { [HEADER]: `${DER.toString('base64')} x` }],
    ['PEM and something else', { [HEADER]: encodeURIComponent(`${certificates['till-1'].certificate}x`) }],
    ['more characters than Node accepts', { [HEADER]: `:${'A'.repeat(16_384)}:` }],
  ])('is none: %s', (_what, headers) => {
    expect(read(from('10.1.2.3', headers))).toBeUndefined();
    expect(read(from('10.1.2.3', headers))).toBeUndefined();
  });
});

describe('the certificate of the connection', () => {
  const read = certificateReader(readMtls({}));

  it.each<[string, PossessionRequest]>([
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
