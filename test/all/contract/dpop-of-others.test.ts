import express from 'express';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import { auth } from 'express-oauth2-jwt-bearer';
import request from 'supertest';
import { authenticate } from '../../../src/gate';
import { dpop } from '../../../src/gate/possession';
import { startTestIssuer } from '../../../src/testing';
import type { HttpTestIssuer } from '../../../src/testing';
import { callerKey, proof, thumbprint } from '../../support/dpop';
import type { ProofParts } from '../../support/dpop';
import { badProofs, goodProofs } from '../../support/dpop-cases';
import { recordingLogger } from '../../support/log';

const now = Math.floor(Date.now() / 1000);
/** What express-oauth2-jwt-bearer 1.10 accepts. */
const ONLY_HERE = ['a method in another case', 'a jti of 513 characters', 'a nonce that is not a string'];
/** What is at the edge of the time moves while the test runs. */
const AT_THE_EDGE = [
  'the oldest iat',
  'the latest iat',
  'an iat to come',
  'an exp that has just passed',
  'an nbf that is about to come',
  'an nbf to come',
];

const refused: ErrorRequestHandler = ({ status }: { status?: number }, _req, res, next) =>
  res.headersSent ? next() : void res.status(status ?? 500).end();

/** One app per gate; both are reached at the same URL by name. */
function appWith(gate: RequestHandler): express.Express {
  return express()
    .use(gate)
    .get('/v1/orders', (_req, res) => void res.end())
    .use(refused);
}

describe('proofs, compared with express-oauth2-jwt-bearer', () => {
  const baseUrl = 'http://api.test';
  let issuer: HttpTestIssuer;
  let ours: express.Express;
  let theirs: express.Express;
  let accessToken: string;

  beforeAll(async () => {
    issuer = await startTestIssuer();
    const gate = authenticate({
      ...issuer.options,
      logger: recordingLogger(),
      possession: [dpop({ baseUrl })],
      unguarded: 'allow',
    });
    ours = appWith(gate);
    const { issuer: issuerBaseURL, audience } = issuer;
    const theirDpop = { enabled: true, required: false, iatOffset: 60, iatLeeway: 10 };
    theirs = appWith(auth({ issuerBaseURL, audience, tokenSigningAlg: 'ES256', dpop: theirDpop }));
    accessToken = issuer.token({ claims: { cnf: { jkt: thumbprint(callerKey()) } } });
  });
  afterAll(() => issuer.close());

  const send = async (app: express.Express, parts: ProofParts, scheme = 'DPoP'): Promise<number> => {
    const claims = { iat: now, ...parts.claims };
    const sent = { Host: 'api.test', Authorization: `${scheme} ${accessToken}` };
    const response = await request(app)
      .get('/v1/orders')
      .set({ ...sent, DPoP: proof({ url: `${baseUrl}/v1/orders`, accessToken, ...parts, claims }) });
    return response.status;
  };

  const timeless = ([what]: readonly [string, ...unknown[]]): boolean => !AT_THE_EDGE.includes(what);

  it.each(goodProofs(baseUrl, now).filter(timeless))('%s: both accept', async (_what, parts) => {
    expect([await send(ours, parts), await send(theirs, parts)]).toEqual([200, 200]);
  });

  it.each(badProofs(baseUrl, now).filter(timeless))('%s: refused here', async (what, parts) => {
    const accepted = (await send(theirs, parts)) === 200;
    expect([await send(ours, parts), accepted]).toEqual([401, ONLY_HERE.includes(what)]);
  });

  it('a proof that comes twice: refused here', async () => {
    const parts = { claims: { jti: 'again' } };
    expect([await send(ours, parts), await send(ours, parts)]).toEqual([200, 401]);
    expect([await send(theirs, parts), await send(theirs, parts)]).toEqual([200, 200]);
  });

  it('a bound token as a bearer token: both refuse', async () => {
    expect((await send(ours, {}, 'Bearer')) >= 400).toBe(true);
    expect((await send(theirs, {}, 'Bearer')) >= 400).toBe(true);
  });
});
