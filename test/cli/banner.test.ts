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

it('the report of dev fits into 80 columns, except the line to paste', () => {
  const texts = [
    banner(report, 'npx tillgate', undefined),
    banner({ ...report, clients: [] }, 'npx tillgate', './app.js'),
    tokenServerBanner({ ...report, audience: report.base_url, scopes: SCOPES }, 'npx tillgate'),
    tokenServerBanner({ ...report, audience: report.base_url, scopes: undefined }, 'npx tillgate'),
  ];
  const lines = texts.flatMap((text) => text.split('\n')).filter((line) => !line.startsWith('  TOKEN='));
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
  for (const scope of client.scope.split(' ')) expect(texts[0]).toContain(scope);
  for (const scope of SCOPES) expect(texts[2]).toContain(scope);
});

it('the report of dev suggests no request to a route of the scaffold where the app is another', () => {
  expect(banner(report, 'npx tillgate', undefined)).toContain('403: it only reads');
  expect(banner(report, 'npx tillgate', './app.js')).not.toContain('403');
});
