import { OIDC_PROVIDER } from './oidc-provider';
import { runServer } from './run-server';
import type { Seen } from './run-server';
import seen from './seen.json';

/** `npm run servers` runs the other servers too, outside of CI; Keycloak has a suite of its own. */
it('oidc-provider: both gates accept its token, and each change of a client discards the earlier one', async () => {
  const row = await runServer(OIDC_PROVIDER);
  expect([row.first, row.options]).toEqual(['200', '200']);
  for (const change of ['description', 'secret', 'deletion'] as const)
    expect(row[change]).toMatch(/^401 after \d+ ms$/);
});

it.each(seen as Seen[])('the recorded row of $server has what is compared', ({ options, date, ...row }) => {
  expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(Object.values(row).every((cell) => cell !== '')).toBe(true);
  expect(options).toMatch(/^\d{3}/);
});
