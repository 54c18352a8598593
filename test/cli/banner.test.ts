import { banner, tokenServerBanner } from '../../src/cli/banner';
import { SCOPES } from '../../src/app/commerce/resources';

const client = {
  ...{ client_id: 'pos-terminal', client_secret: 'x'.repeat(43), scope: SCOPES.slice(0, 12).join(' ') },
  ...{ description: '', disabled: false, generation: 1 },
};
const report = {
  ...{ ready_ms: 1, base_url: 'http://127.0.0.1:3000', auth_url: 'http://127.0.0.1:4000', data_dir: '.tillgate' },
  ...{ embedded: true, admin_url: 'http://127.0.0.1:9000', clients: [client], ready: true },
  ...{ console_url: 'http://127.0.0.1:4000/console', docs_url: 'http://127.0.0.1:3000/docs' },
};

const SAMPLES = { allowed: '/v1/orders', denied: '/v1/orders', scope: 'orders:read' };
const NONE = { allowed: undefined, denied: undefined, scope: '' };
const LOCATION = 'TILLGATE_DATA_DIR=/home/till/shop/.tillgate';

it('the report of dev fits into 80 columns, except the line to paste', () => {
  const texts = [
    banner(report, 'npx tillgate', SAMPLES, LOCATION),
    banner({ ...report, clients: [] }, 'npx tillgate', NONE, LOCATION),
    tokenServerBanner({ ...report, audience: report.base_url, scopes: SCOPES }, 'npx tillgate', LOCATION),
    tokenServerBanner({ ...report, audience: report.base_url, scopes: undefined }, 'npx tillgate', LOCATION),
  ];
  const lines = texts.flatMap((text) => text.split('\n')).filter((line) => !line.startsWith('  TOKEN='));
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
  for (const scope of client.scope.split(' ')) expect(texts[0]).toContain(scope);
  for (const scope of SCOPES) expect(texts[2]).toContain(scope);
});

it('the report of dev suggests requests to routes that the app has, and none where it has none', () => {
  const requests = (text: string) => text.match(/(curl -i|call (GET|POST)) \S+/g) ?? [];
  const named = banner(report, 'npx tillgate', { allowed: '/v1/tills', denied: '/v1/keys', scope: 'a' }, LOCATION);
  expect(requests(named)).toEqual([
    'curl -i http://127.0.0.1:3000/v1/tills',
    'call GET /v1/tills',
    'call POST /v1/keys',
  ]);
  expect(requests(banner(report, 'npx tillgate', NONE, LOCATION))).toEqual([]);
});

it('both reports say how the servers are found from any folder', () => {
  const tokens = tokenServerBanner({ ...report, audience: 'a', scopes: undefined }, 'npx tillgate', LOCATION);
  for (const text of [banner(report, 'npx tillgate', SAMPLES, LOCATION), tokens]) {
    expect(text).toContain(`\n  export ${LOCATION}\n`);
  }
});
