import { AuthError, authenticate } from '../../src';
import { contractCases, createTestIssuer } from '../../src/testing';
import { failuresOf } from './failures-of';
import { assemble, SAMPLE_DOCUMENT as openapi, sampleParts, silent, tillgate } from './sample-app';
import type { SampleParts } from './sample-app';

const issuer = createTestIssuer();
const appWith = (parts: Partial<SampleParts> = {}) => assemble({ ...sampleParts(tillgate(issuer)), ...parts });

function refuseWith429(res: Parameters<SampleParts['first']>[1]): void {
  const { headers, status, reason } = new AuthError('too_many_unknown_keys');
  res.status(status).set(headers).json({ code: reason });
}

describe('an API that does not trust the issuer', () => {
  it('is reported once and clearly, before any other case', async () => {
    const stranger = createTestIssuer({ audience: 'https://elsewhere.test' });
    const [first, ...others] = await failuresOf(contractCases({ app: appWith(), openapi, issuer: stranger }));

    expect(first).toBe(
      'The API accepts tokens of the test issuer\n' +
        "  None of this issuer's tokens is accepted: GET /api/orders responded 401 wrong_audience, and so did 4 more. " +
        'Give authenticate() the options of the issuer, or configure its issuer, audience and keys.',
    );
    expect(others.filter((message) => message.includes('None of this'))).toEqual([]);
  });

  it.each<[string, SampleParts['first']]>([
    ['needs no token by mistake', (req, res, next) => (req.path === '/api/orders' ? void res.json([]) : next())],
    ['does not exist', (req, res, next) => (req.path === '/api/orders' ? void res.sendStatus(404) : next())],
  ])('is reported also where one operation %s', async (_what, first) => {
    const stranger = createTestIssuer();
    const [found] = await failuresOf(contractCases({ app: appWith({ first }), openapi, issuer: stranger }), 1);

    expect(found).toContain('GET /api/orders/{id} responded 401 unknown_key, and so did 2 more.');
  });

  it('is reported when its keys cannot be fetched', async () => {
    const gate = authenticate({ ...issuer.options, keys: undefined, issuer: 'http://127.0.0.1:1', logger: silent });
    const [found] = await failuresOf(contractCases({ app: appWith({ gate }), openapi, issuer }), 1);
    await gate.close();

    expect(found).toContain("None of this issuer's tokens is accepted: GET /api/orders responded 503 keys_unavailable");
  });

  it('is reported when its gate cannot ask for the key', async () => {
    const first: SampleParts['first'] = (req, res, next) => {
      if (req.headers.authorization === undefined) next();
      else refuseWith429(res);
    };
    const [found, ...others] = await failuresOf(contractCases({ app: appWith({ first }), openapi, issuer }));

    expect(found).toContain('GET /api/orders responded 429 too_many_unknown_keys, and so did 4 more.');
    expect(others.join()).not.toContain('rate limit');
  });

  it('is not reported when one operation accepts a token', async () => {
    const listOrders: SampleParts['listOrders'] = [(_req, res) => void res.sendStatus(401)];
    const [first] = await failuresOf(contractCases({ app: appWith({ listOrders }), openapi, issuer }), 1);

    expect(first).toContain('GET /api/orders refuses');
  });
});
