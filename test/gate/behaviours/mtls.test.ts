import { createHash, X509Certificate } from 'node:crypto';
import { request as httpsRequest, createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { mtls } from '../../../src/gate/possession';
import certificates from '../../support/certificates.json';
import { gateApp, remember } from '../../support/gate-app';
import type { GateApp, GateAppOptions } from '../../support/gate-app';
import { token } from '../../support/issuer';
import { expectRefusal } from '../../support/refusals';
import { boundToken, callerKey, dpopApp, proof, thumbprint } from '../../support/dpop';
import type { DpopApp } from '../../support/dpop';

const HEADER = 'x-client-certificate';
const forwarded = mtls({ certificate: (req) => decodeURIComponent(String(req.headers[HEADER] ?? '')) });

describe('mutual TLS', () => {
  const [OWN, OTHER] = [certificates['till-1'], certificates['till-2']];
  const DER = new X509Certificate(OWN.certificate).raw;
  /** RFC 8705 section 3.1, made independently of the code under test. */
  const THUMBPRINT = createHash('sha256').update(DER).digest('base64url');
  const BOUND = token({ claims: { cnf: { 'x5t#S256': THUMBPRINT } } });

  const proxied = (options: GateAppOptions = {}): GateApp => gateApp({ possession: [forwarded], ...options });

  describe('a token that is bound to a client certificate, behind a proxy', () => {
    it.each([
      ['PEM, percent-encoded (nginx)', encodeURIComponent(OWN.certificate)],
      ['PEM with + and / as they are (AWS)', encodeURI(OWN.certificate)],
      ['base64 of DER', DER.toString('base64')],
    ])('is accepted with it: %s', async (_form, value) => {
      const through = proxied();
      for (let use = 0; use < 3; use++) await through.get(BOUND).set(HEADER, value).expect(200);
    });

    it.each([
      ['no header', undefined],
      ['an empty header', ''],
      ['something else', 'x'],
      ['bytes that are not a certificate', `:${Buffer.from('x').toString('base64')}:`],
      ['broken percent-encoding', `%-----BEGIN CERTIFICATE-----`],
      ['two certificates in PEM', encodeURIComponent(OWN.certificate + OTHER.certificate)],
      ['two headers in PEM', `${encodeURIComponent(OWN.certificate)}, ${encodeURIComponent(OTHER.certificate)}`],
      ['two certificates', `:${DER.toString('base64')}:, :${DER.toString('base64')}:`],
    ])('is refused with %s, also once it is known', async (_what, value) => {
      const through = proxied();
      await remember(
        { ...through, get: () => through.get(BOUND).set(HEADER, encodeURIComponent(OWN.certificate)) },
        BOUND,
      );
      const test = through.get(BOUND);
      const response = await (value === undefined ? test : test.set(HEADER, value));
      expectRefusal(response, 'sender_constrained', through, { detail: 'the request has no client certificate' });
    });

    it('is refused with the certificate of another client', async () => {
      const through = proxied();
      const response = await through.get(BOUND).set(HEADER, encodeURIComponent(OTHER.certificate));
      expectRefusal(response, 'wrong_binding', through);
    });

    it('is refused where mutual TLS is off, with the certificate too', async () => {
      const through = gateApp();
      const response = await through.get(BOUND).set(HEADER, encodeURIComponent(OWN.certificate));
      expectRefusal(response, 'sender_constrained', through);
    });

    it('is refused where it is bound to a DPoP key as well, which is off', async () => {
      const through = proxied();
      const both = token({ claims: { cnf: { 'x5t#S256': THUMBPRINT, jkt: 'x' } } });
      const response = await through.get(both).set(HEADER, encodeURIComponent(OWN.certificate));
      expectRefusal(response, 'sender_constrained', through);
    });
  });

  it('a token that is not bound is accepted, and refused where a binding is required', async () => {
    await remember(proxied(), token());
    const through = proxied({ possessionRequired: true });
    const response = await through.get(token()).set(HEADER, encodeURIComponent(OWN.certificate));
    expectRefusal(response, 'binding_required', through);
    await through.get(BOUND).set(HEADER, encodeURIComponent(OWN.certificate)).expect(200);
  });

  describe('a token that is bound to the certificate of the TLS connection', () => {
    const through = gateApp({ possession: [mtls()] });
    const server = createServer(
      {
        cert: certificates.server.certificate,
        key: certificates.server.privateKey,
        requestCert: true,
        rejectUnauthorized: false,
      },
      through.app,
    );
    beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
    afterAll(() => new Promise((resolve) => server.close(resolve)));

    /** Status of GET /v1/orders with a certificate, or without one. */
    function get(client?: { certificate: string; privateKey: string }, headers = {}): Promise<number | undefined> {
      const { port } = server.address() as AddressInfo;
      const tls = { rejectUnauthorized: false, ...(client && { cert: client.certificate, key: client.privateKey }) };
      return new Promise((resolve, reject) => {
        const path = '/v1/orders';
        const sent = { authorization: `Bearer ${BOUND}`, ...headers };
        const req = httpsRequest({ host: '127.0.0.1', port, path, headers: sent, agent: false, ...tls }, (res) => {
          res.resume().on('end', () => resolve(res.statusCode));
        });
        req.on('error', reject).end();
      });
    }

    it('is accepted over it, and refused over another or none, whatever a header says', async () => {
      const lie = { [HEADER]: encodeURIComponent(OWN.certificate), 'client-cert': `:${DER.toString('base64')}:` };
      expect(await get(OWN)).toBe(200);
      expect(await get(OWN)).toBe(200);
      expect(await get(OTHER, lie)).toBe(401);
      expect(await get(undefined, lie)).toBe(401);
      expect(through.log.at('info').map(({ fields }) => fields['reason'])).toEqual([
        'wrong_binding',
        'sender_constrained',
      ]);
    });

    it('is asked for once per connection', async () => {
      let reads = 0;
      server.on('secureConnection', (socket: TLSSocket) => {
        const read = socket.getPeerX509Certificate.bind(socket);
        socket.getPeerX509Certificate = () => (reads++, read());
      });
      const { port } = server.address() as AddressInfo;
      const { Agent } = await import('node:https');
      const agent = new Agent({ keepAlive: true, maxSockets: 1, cert: OWN.certificate, key: OWN.privateKey });
      for (let use = 0; use < 3; use++) {
        await new Promise<void>((resolve, reject) => {
          const headers = { authorization: `Bearer ${BOUND}` };
          const options = { host: '127.0.0.1', port, path: '/v1/orders', headers, agent, rejectUnauthorized: false };
          httpsRequest(options, (res) => res.resume().on('end', resolve))
            .on('error', reject)
            .end();
        });
      }
      agent.destroy();
      expect(reads).toBe(1);
    });
  });
});

describe('DPoP or mutual TLS', () => {
  const [OWN, OTHER] = [certificates['till-1'].certificate, certificates['till-2'].certificate].map(encodeURIComponent);
  const HASH = createHash('sha256')
    .update(new X509Certificate(certificates['till-1'].certificate).raw)
    .digest('base64url');
  const [NOT_BOUND, BY_CERTIFICATE] = [token(), token({ claims: { cnf: { 'x5t#S256': HASH } } })];
  const BY_BOTH = boundToken(callerKey(), { cnf: { jkt: thumbprint(callerKey()), 'x5t#S256': HASH } });

  const eitherApp = (): DpopApp => dpopApp({}, { possessionRequired: true, possession: [forwarded] });

  describe('possessionRequired: true accepts', () => {
    it('a token that is bound by DPoP, with its proof', async () => {
      const through = eitherApp();
      for (let use = 0; use < 3; use++) await through.send().expect(200);
    });

    it('a token that is bound to a certificate, with it', async () => {
      const through = eitherApp();
      for (let use = 0; use < 3; use++)
        await through
          .get(BY_CERTIFICATE)
          .set(HEADER, OWN ?? '')
          .expect(200);
    });

    it('a token that is bound in both ways, with both', async () => {
      const sent = { token: BY_BOTH, proof: proof({ accessToken: BY_BOTH }) };
      await eitherApp()
        .send(sent)
        .set(HEADER, OWN ?? '')
        .expect(200);
    });
  });

  describe('possessionRequired: true refuses', () => {
    it('a token that is not bound, with whatever it comes, also once it is known', async () => {
      const through = eitherApp();
      for (let use = 0; use < 3; use++) {
        const response = await through.get(NOT_BOUND).set(HEADER, OWN ?? '');
        expectRefusal(response, 'binding_required', through, { dpop: 'accepted' });
      }
      const sent = { token: NOT_BOUND, proof: proof({ accessToken: NOT_BOUND }) };
      expectRefusal(await through.send(sent), 'binding_required', through, { dpop: 'used' });
    });

    it.each([
      ['without a certificate', undefined, 'sender_constrained'],
      ['with another one', OTHER, 'wrong_binding'],
    ] as const)('a token that is bound to a certificate, %s', async (_what, certificate, reason) => {
      const through = eitherApp();
      const test = through.get(BY_CERTIFICATE);
      const response = await (certificate === undefined ? test : test.set(HEADER, certificate));
      expectRefusal(response, reason, through, { dpop: 'accepted' });
    });

    it('a token that is bound by DPoP as a bearer token, also with a certificate', async () => {
      const through = eitherApp();
      const response = await through.get(boundToken()).set(HEADER, OWN ?? '');
      expectRefusal(response, 'sender_constrained', through, { dpop: 'accepted' });
    });

    it('a token that is bound in both ways, with one of both', async () => {
      const through = eitherApp();
      const sent = { token: BY_BOTH, proof: proof({ accessToken: BY_BOTH }) };
      expectRefusal(await through.send(sent), 'sender_constrained', through, { dpop: 'used' });
      const response = await through.get(BY_BOTH).set(HEADER, OWN ?? '');
      expectRefusal(response, 'sender_constrained', through, { dpop: 'accepted' });
    });
  });

  it('without possessionRequired: true a token that is not bound is accepted', async () => {
    const through = dpopApp({}, { possession: [forwarded] });
    await through.get(NOT_BOUND).expect(200);
  });
});
