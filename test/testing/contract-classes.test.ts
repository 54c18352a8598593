import { contractCases, createTestIssuer } from '../../src/testing';
import type { CaseClass, ContractCases } from '../../src/testing';
import { isFullRun } from '../support/amount';
import { listen } from '../support/listen';
import { failuresOf } from './failures-of';
import { KEY_MISTAKES, MISTAKES, STOCK_DOCUMENT as openapi, stockApp } from './contract-classes';

const issuer = createTestIssuer();

/** The classes whose cases fail. */
async function red(cases: ContractCases): Promise<readonly (CaseClass | undefined)[]> {
  const found = new Set<CaseClass | undefined>();
  for (const { class: what, run } of cases) await run().catch(() => found.add(what));
  return [...found].filter((one) => one !== 'document');
}

async function overHttp(app: ReturnType<typeof stockApp>, classes?: readonly CaseClass[], from = issuer) {
  const { url, close } = await listen(app);
  const found = await red(contractCases({ url, openapi, issuer: from, classes, propagationMs: 0 }));
  await close();
  return found;
}

const BROUGHT = 'GET /levels refuses a token that brings its own certificate';
const NAMED = 'GET /levels refuses a token that names the URL of its keys';
const REMOVED = 'The API refuses a token whose key was removed';

const rows = Object.entries(MISTAKES).flatMap(([what, shapes]) =>
  Object.entries(shapes)
    .slice(0, isFullRun ? undefined : 1)
    .map(([name, mistake]) => [what as CaseClass, name, mistake] as const),
);

describe('a class of cases', () => {
  it('finds nothing in an app that is right, and says why a class has nothing to try', async () => {
    const cases = contractCases({ app: stockApp(issuer), openapi, issuer });
    expect(await red(cases)).toEqual([]);
    expect(cases.report().withoutCase).toEqual([
      'effect: it changes nothing: GET /levels',
      'object: nothing in its request has x-owner: client: GET /levels',
      'property: its request has no readOnly member: GET /levels',
    ]);
    expect(await overHttp(stockApp(issuer), isFullRun ? undefined : ['scope', 'object', 'state'])).toEqual([]);
  });

  it.each(rows)('%s finds an app that %s', async (what, _name, mistake) => {
    const app = () => stockApp(issuer, mistake);
    expect(await red(contractCases({ app: app(), openapi, issuer, classes: [what] }))).toContain(what);
    expect(await overHttp(app(), [what])).toContain(what);
  });

  // One of each kind, unless all are tried.
  const keyRows = Object.entries(KEY_MISTAKES).map(([name, mistake], at) => [name, at, mistake] as const);
  it.each(keyRows.filter(([, at]) => isFullRun || at % 3 === 0))(
    'token finds, over HTTP too, an app that %s',
    async (_name, at, mistake) => {
      const kind = [BROUGHT, NAMED, REMOVED][Math.trunc(at / 3)] ?? '';
      const expected = at === 5 ? `${kind}, without a key id` : kind;
      const own = createTestIssuer();
      const app = () => stockApp(own, mistake);
      const classes = ['token'] as const;
      const found = await failuresOf(contractCases({ app: app(), openapi, issuer: own, classes }));
      expect(found.map((text) => text.split('\n')[0])).toContain(expected);
      expect(await overHttp(app(), classes, own)).toEqual(['token']);
    },
  );
});
