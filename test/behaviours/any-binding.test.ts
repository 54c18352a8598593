import { createHash, X509Certificate } from 'node:crypto';
import certificates from '../support/certificates.json';
import { boundToken, callerKey, dpopApp, proof, thumbprint } from '../support/dpop';
import type { DpopApp } from '../support/dpop';
import { token } from '../support/issuer';
import { expectRefusal } from '../support/refusals';

const HEADER = 'x-client-certificate';
const [OWN, OTHER] = [certificates['till-1'].certificate, certificates['till-2'].certificate].map(encodeURIComponent);
const HASH = createHash('sha256')
  .update(new X509Certificate(certificates['till-1'].certificate).raw)
  .digest('base64url');
const [NOT_BOUND, BY_CERTIFICATE] = [token(), token({ claims: { cnf: { 'x5t#S256': HASH } } })];
const BY_BOTH = boundToken(callerKey(), { cnf: { jkt: thumbprint(callerKey()), 'x5t#S256': HASH } });

const eitherApp = (): DpopApp =>
  dpopApp({}, { binding: 'any', mtls: { header: HEADER, trustedProxies: ['127.0.0.0/8', '::1'] } });

describe("binding: 'any' accepts", () => {
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

describe("binding: 'any' refuses", () => {
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

it("without binding: 'any' a token that is not bound is accepted", async () => {
  const through = dpopApp({}, { mtls: { header: HEADER, trustedProxies: ['127.0.0.0/8', '::1'] } });
  await through.get(NOT_BOUND).expect(200);
});
