import { createHash, X509Certificate } from 'node:crypto';
import { authenticate, type AuthError, type GateOptions } from '../../../src/gate';
import { silentLogger } from '../../../src/gate/core/logger';
import { dpop, mtls } from '../../../src/gate/possession';
import type { ReplayStore } from '../../../src/gate/possession';
import { PossessionVerifier } from '../../../src/gate/possession/possession';
import { SignatureVerifier } from '../../../src/gate/token/signature';
import { BASE_URL, boundToken, callerKey, proof, thumbprint } from '../../support/dpop';
import { ISSUER, NOW, NOW_MS } from '../../support/issuer';
import certificates from '../../support/certificates.json';

const [OWN, OTHER] = [certificates['till-1'].certificate, certificates['till-2'].certificate];
const JKT = { jkt: thumbprint(callerKey()) };
const X5T = { 'x5t#S256': createHash('sha256').update(new X509Certificate(OWN).raw).digest('base64url') };
const BOTH = { ...JKT, ...X5T };
const TOLERANCES_MS = [10_000, 30_000];

/** A gate with both kinds of proof, DPoP listed first. */
function scene(required = true) {
  const remember = jest.fn<ReturnType<ReplayStore['remember']>, Parameters<ReplayStore['remember']>>(() => true);
  const certificate = ({ headers }: { headers: object }): string => String((headers as { cert?: string }).cert ?? '');
  const settings = {
    possession: [dpop({ baseUrl: BASE_URL, replayStore: { remember } }), mtls({ certificate })],
    possessionRequired: required,
    resource: undefined,
    issuers: TOLERANCES_MS.map((clockToleranceMs) => ({ clockToleranceMs })),
    clock: () => NOW_MS,
    logger: silentLogger,
  };
  const verifier = new PossessionVerifier(settings, new SignatureVerifier());
  return {
    remembered: remember.mock.calls,
    /** Whether a request with a token of these confirmations proves all of them; else the reason. */
    outcome: async (scheme: 'DPoP' | 'Bearer', cnf: object | undefined, cert?: string, dpopProof = proof()) => {
      const headers = {
        authorization: `${scheme} x`,
        ...(scheme === 'DPoP' && { dpop: dpopProof }),
        ...(cert && { cert }),
      };
      const holder = { issuer: ISSUER, clientId: 'pos-17', claims: { ...(cnf && { cnf }) } as never };
      const verified = verifier.verify({ method: 'GET', url: '/v1/orders', headers }, boundToken(), holder);
      return verified.then(
        () => 'accepted',
        ({ reason }: AuthError) => reason,
      );
    },
  };
}

describe('a gate with DPoP and mutual TLS, where one of them is required', () => {
  it.each([
    ['bound by DPoP, with its proof', 'DPoP', JKT, undefined, 'accepted'],
    ['bound to a certificate, with it', 'Bearer', X5T, OWN, 'accepted'],
    ['bound in both ways, with both', 'DPoP', BOTH, OWN, 'accepted'],
    ['not bound, with a certificate', 'Bearer', undefined, OWN, 'binding_required'],
    ['not bound, with a proof', 'DPoP', undefined, undefined, 'binding_required'],
    ['bound to a certificate, without it', 'Bearer', X5T, undefined, 'sender_constrained'],
    ['bound to a certificate, with another one', 'Bearer', X5T, OTHER, 'wrong_binding'],
    ['bound by DPoP, as a bearer token with a certificate', 'Bearer', JKT, OWN, 'sender_constrained'],
    ['bound in both ways, with the proof alone', 'DPoP', BOTH, undefined, 'sender_constrained'],
    ['bound in both ways, with the certificate alone', 'Bearer', BOTH, OWN, 'sender_constrained'],
  ] as const)('a token that is %s', async (_what, scheme, cnf, cert, expected) => {
    expect(await scene().outcome(scheme, cnf, cert)).toBe(expected);
  });

  it('a proof is not used up by a request without the certificate that it needs as well', async () => {
    const { outcome, remembered } = scene();
    expect([await outcome('DPoP', BOTH), remembered]).toEqual(['sender_constrained', []]);
  });
});

it('where neither is required, a token that is not bound is accepted as a bearer token, and not with the DPoP scheme', async () => {
  const { outcome } = scene(false);
  expect([await outcome('Bearer', undefined, OWN), await outcome('DPoP', undefined)]).toEqual([
    'accepted',
    'binding_required',
  ]);
});

it('a proof may be as early as the largest tolerance of the issuers', async () => {
  const early = (seconds: number): string => proof({ claims: { iat: NOW + seconds } });
  const { outcome } = scene();
  expect(await outcome('DPoP', JKT, undefined, early(30))).toBe('accepted');
  expect(await outcome('DPoP', JKT, undefined, early(30.001))).toBe('invalid_dpop_proof');
});

it('the replay store gets the client with its issuer', async () => {
  const { outcome, remembered } = scene();
  await outcome('DPoP', JKT);
  expect(remembered).toEqual([[expect.stringMatching(/^[\w-]{22}$/), expect.any(Number), `client ${ISSUER} pos-17`]]);
});

describe('the type Possession', () => {
  const handMade = { confirmation: 'jkt', challenge: () => undefined, verify: () => undefined, status: undefined };
  const issuer = { issuer: ISSUER, audience: 'https://api.test' };

  it('is what dpop() and mtls() return', () => {
    const options: GateOptions = { possession: [dpop({ baseUrl: BASE_URL }), mtls()] };
    expect(options.possession).toHaveLength(2);
  });

  it('is nothing that is written by hand, with however many of its members', () => {
    // @ts-expect-error -- only what dpop() and mtls() return
    const named: GateOptions = { possession: [{ confirmation: 'jkt' }] };
    // @ts-expect-error -- only what dpop() and mtls() return
    const complete: GateOptions = { possession: [handMade] };
    expect(complete.possession).toEqual([handMade]);
    expect(() => authenticate({ ...issuer, ...named })).toThrow(TypeError);
  });
});
