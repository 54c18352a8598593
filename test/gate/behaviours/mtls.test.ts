import { createHash, X509Certificate } from 'node:crypto';
import { createServer, request } from 'node:https';
import type { RequestOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Reason } from '../../../src/gate';
import { mtls } from '../../../src/gate/possession';
import certificates from '../../support/certificates.json';
import { gateApp, remember } from '../../support/gate-app';
import type { GateApp } from '../../support/gate-app';
import { token } from '../../support/issuer';
import { expectRefusal } from '../../support/refusals';
import type { RefusalDetails } from '../../support/refusals';

const HEADER = 'x-client-certificate';
const forwarded = mtls({ certificate: (req) => decodeURIComponent(String(req.headers[HEADER] ?? '')) });
const [OWN, OTHER] = [certificates['till-1'], certificates['till-2']];
const [SENT, SENT_OTHER] = [OWN, OTHER].map(({ certificate }) => encodeURIComponent(certificate)) as [string, string];
/** RFC 8705 section 3.1, made independently of the code under test. */
const HASH = createHash('sha256').update(new X509Certificate(OWN.certificate).raw).digest('base64url');
const NOT_BOUND = token();
const BOUND = token({ claims: { cnf: { 'x5t#S256': HASH } } });
const NO_CERTIFICATE = { detail: 'cnf.x5t#S256 is not proven: the request has no client certificate' };
const OTHER_CERTIFICATE = { detail: 'the certificate is not that of cnf.x5t#S256' };

/** GET with this token, and with this value in the header of the proxy. */
const send = (through: GateApp, raw: string, certificate?: string) =>
  certificate === undefined ? through.get(raw) : through.get(raw).set(HEADER, certificate);

describe('mutual TLS behind a proxy', () => {
  it('accepts a token that is bound to the certificate of the request', async () => {
    const through = gateApp({ possession: [forwarded] });
    for (let use = 0; use < 3; use++) await send(through, BOUND, SENT).expect(200);
  });

  it.each<[string, string | undefined, Reason, RefusalDetails]>([
    ['a certificate', undefined, 'sender_constrained', NO_CERTIFICATE],
    ['its own certificate', SENT_OTHER, 'wrong_binding', OTHER_CERTIFICATE],
  ])('refuses its token without %s, also once the token is known', async (_what, certificate, reason, details) => {
    const through = gateApp({ possession: [forwarded] });
    expectRefusal(await send(through, BOUND, certificate), reason, through, details);
    await remember({ ...through, get: () => send(through, BOUND, SENT) }, BOUND);
    expectRefusal(await send(through, BOUND, certificate), reason, through, details);
  });

  it('accepts a token that is not bound, and refuses it where a binding is required', async () => {
    await remember(gateApp({ possession: [forwarded] }), NOT_BOUND);
    const through = gateApp({ possession: [forwarded], possessionRequired: true });
    expectRefusal(await send(through, NOT_BOUND, SENT), 'binding_required', through);
    await send(through, BOUND, SENT).expect(200);
  });

  it('is off by default: a bound token is refused, with its certificate too', async () => {
    const through = gateApp();
    expectRefusal(await send(through, BOUND, SENT), 'sender_constrained', through);
  });
});

describe('mutual TLS at the server itself', () => {
  const through = gateApp({ possession: [mtls()] });
  const { certificate: cert, privateKey: key } = certificates.server;
  const server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false }, through.app);
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  /** Status of GET /v1/orders with a bound token. */
  function get(options: RequestOptions): Promise<number | undefined> {
    const { port } = server.address() as AddressInfo;
    const headers = { authorization: `Bearer ${BOUND}`, ...options.headers };
    const target = { host: '127.0.0.1', port, path: '/v1/orders', rejectUnauthorized: false };
    return new Promise((resolve, reject) => {
      const req = request({ agent: false, ...options, ...target, headers }, (res) => {
        res.resume().on('end', () => resolve(res.statusCode));
      });
      req.on('error', reject).end();
    });
  }
  const clientOf = ({ certificate, privateKey }: typeof OWN) => ({ cert: certificate, key: privateKey });

  it('accepts the certificate of the connection, and no other and none, whatever a header says', async () => {
    const headers = {
      [HEADER]: SENT,
      'client-cert': `:${new X509Certificate(OWN.certificate).raw.toString('base64')}:`,
    };
    for (let use = 0; use < 2; use++) expect(await get(clientOf(OWN))).toBe(200);
    expect(await get({ ...clientOf(OTHER), headers })).toBe(401);
    expect(await get({ headers })).toBe(401);
    const reasons = through.log.at('info').map(({ fields }) => fields['reason']);
    expect(reasons).toEqual(['wrong_binding', 'sender_constrained']);
  });
});
