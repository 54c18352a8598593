import { readSettings } from '../../src';
import { createApp, createLog } from '../../src/app';
import { contractCases, createTestIssuer } from '../../src/testing';
import { FIRST_IDS } from './first-ids';

const issuer = createTestIssuer();
const scaffold = createApp({
  settings: readSettings({ TILLGATE_AUTH_URL: issuer.issuer }),
  gate: issuer.options,
  logger: createLog({ level: 'silent' }),
});
afterAll(() => scaffold.close());

const requests = ({ path }: { path: string }) => ({ path: { id: FIRST_IDS[path.split('/')[2]!] ?? '' } });
const cases = contractCases({ app: scaffold.handler, openapi: 'openapi.yaml', issuer, requests });
for (const { name, run } of cases) it(name, run);

it('was called everywhere, and answered 2xx everywhere', () => {
  expect(cases.report()).toMatchObject({ notCalled: [], withoutSuccess: [], notJudged: [] });
});
