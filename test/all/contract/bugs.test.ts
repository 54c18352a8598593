import { contractCases, createTestIssuer } from '../../../src/testing';
import type { ContractCases } from '../../../src/testing';
import { listen } from '../../support/listen';
import { failuresOf } from '../../testing/failures-of';
import { BUGS } from './bugs';
import { DOCUMENT, makeApp, ORDER } from './orders-app';
import type { Bug } from './orders-app';

const issuer = createTestIssuer();
// Some of the bugs are guards without a gate, which say so.
beforeEach(() => void jest.spyOn(console, 'error').mockReturnValue());
afterEach(() => jest.restoreAllMocks());

/** The requirements of the chosen cases that are not met, by their names. */
async function failing(
  cases: ContractCases,
  isRun: (one: ContractCases[number]) => boolean,
): Promise<readonly string[]> {
  const chosen = Object.assign(cases.filter(isRun), { report: cases.report });
  return (await failuresOf(chosen)).map((text) => text.split('\n', 1)[0] ?? '');
}

/** The cases of one operation; without the success of the others they prove nothing. */
const of = (operation: string) => (one: ContractCases[number]) => one.operation === operation || one.class === 'scope';

describe('the cases of an app', () => {
  it('pass when it is correct', async () => {
    const cases = contractCases({ app: makeApp(issuer), openapi: DOCUMENT, issuer });
    expect(await failing(cases, () => true)).toEqual([]);
  });

  it.each(Object.entries(BUGS))('find %s', async (_bug, row) => {
    const [operation, sentence, bug] = row;
    const cases = contractCases({ app: makeApp(issuer, bug), openapi: DOCUMENT, issuer });
    const expected = `${operation} ${sentence}`;
    expect(await failing(cases, of(operation))).toContain(expected);
  });
});

describe('the cases of a server', () => {
  async function overHttp(bug: Bug, isRun: (one: ContractCases[number]) => boolean) {
    const { url, close } = await listen(makeApp(issuer, bug));
    const cases = contractCases({ url, openapi: DOCUMENT, issuer, propagationMs: 0 });
    return failing(cases, isRun).finally(close);
  }

  it('pass when it is correct', async () => {
    expect(await overHttp({}, () => true)).toEqual([]);
  });

  it('blame an open operation, not the one whose path it begins with', async () => {
    const bug: Bug = {
      gate:
        ({ gate }) =>
        (req, res, next) =>
          req.path.startsWith('/orders/') ? next() : void gate(req, res, next),
      list: ({ read }) => [read, (_req, res) => void res.json([ORDER])],
      get: () => [(_req, res) => void res.json(ORDER)],
    };
    const failed = await overHttp(bug, ({ name }) => name.startsWith('GET '));
    expect(failed).toContain('GET /v1/orders/{id} refuses a request without a token');
    expect(failed.filter((name) => name.startsWith('GET /v1/orders stays closed under'))).toEqual([]);
  });

  it.each(Object.entries(BUGS))('find %s', async (_bug, [operation, sentence, bug]) => {
    const expected = `${operation} ${sentence}`;
    expect(await overHttp(bug, of(operation))).toContain(expected);
  });
});
