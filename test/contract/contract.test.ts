import { readSettings } from '../../src/settings/settings';
import { createApp, createLog } from '../../src/app';
import { contractCases, createTestIssuer } from '../../src/testing';
import { firstIdOf } from './first-ids';

const issuer = createTestIssuer();
const scaffold = createApp({
  settings: readSettings({ TILLGATE_AUTH_URL: issuer.issuer }),
  gate: issuer.options,
  logger: createLog({ level: 'silent' }),
});
afterAll(() => scaffold.close());

function requests({ path }: { readonly path: string }) {
  return path.includes('{id}') ? { path: { id: firstIdOf(path.split('/')[2]!) } } : {};
}
const cases = contractCases({ app: scaffold.handler, openapi: 'openapi.yaml', issuer, requests });
for (const { name, run } of cases) it(name, run);

it('calls every operation, and gets a 2xx from each', () => {
  expect(cases.length).toBeGreaterThan(1_000);
  expect(cases.report()).toMatchObject({ notCalled: [], withoutSuccess: [], notTested: [] });
});
