import type { ErrorRequestHandler } from 'express';
import { auth, requiredScopes, scopeIncludesAny } from 'express-oauth2-jwt-bearer';
import type { ScopeRequirement } from '../../../src/gate/verifier/scope-requirement';
import { contractCases, startTestIssuer } from '../../../src/testing';
import type { ContractCasesOptions, HttpTestIssuer } from '../../../src/testing';
import { failuresOf } from '../../testing/failures-of';
import { assemble, SAMPLE_DOCUMENT, sampleParts } from '../../testing/sample-app';

/** An error handler as in its README, with problem bodies as in the sample's document. */
const errors: ErrorRequestHandler = ({ status = 500, headers = {}, message, code }, _req, res, next) => {
  if (res.headersSent) return next();
  const body = { title: message as string, status: status as number, code: (code as string | undefined) ?? 'error' };
  res
    .set(headers as Record<string, string>)
    .status(status as number)
    .type('application/problem+json')
    .send(JSON.stringify(body));
};

function protectedApp(issuer: HttpTestIssuer) {
  const gate = auth({ issuerBaseURL: issuer.issuer, audience: issuer.audience, tokenSigningAlg: 'ES256' });
  const guard = (need: ScopeRequirement) =>
    'anyOf' in need ? scopeIncludesAny([...need.anyOf]) : requiredScopes([...need.allOf]);
  return assemble({ ...sampleParts({ gate, guard }), errors });
}

describe('the sample app behind express-oauth2-jwt-bearer', () => {
  let issuer: HttpTestIssuer;
  beforeAll(async () => (issuer = await startTestIssuer()));
  afterAll(() => issuer.close());

  /** What fails, by sentence, with how many operations it fails for. */
  async function findings(options: Partial<ContractCasesOptions>): Promise<Record<string, number>> {
    const cases = contractCases({ app: protectedApp(issuer), openapi: SAMPLE_DOCUMENT, issuer, ...options } as never);
    const counts: Record<string, number> = {};
    for (const text of await failuresOf(cases)) {
      const sentence = text.replace(/^\S+ \S+ |\n.*$/gs, '');
      counts[sentence] = (counts[sentence] ?? 0) + 1;
    }
    return counts;
  }

  it('refuses all that it promises to refuse, and takes tokens from the query and beside a second header', async () => {
    expect(await findings({ problems: false, generations: false })).toEqual({
      'refuses two Authorization headers': 5,
      'refuses a token in the query': 5,
    });
  });

  it('knows no generations', async () => {
    expect(await findings({ problems: false, generations: true })).toMatchObject({ 'refuses a superseded token': 5 });
  });
});
