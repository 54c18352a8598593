import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync, existsSync, readdirSync } from 'node:fs';
import { join, dirname, relative, resolve } from 'node:path';
import { transformSync } from 'esbuild';
import type { Express } from 'express';
import request from 'supertest';
import * as ws from 'ws';
import { authenticate } from '../../../src/gate';
import { createTestIssuer } from '../../../src/testing';
import type { TestIssuer } from '../../../src/testing';
import { rawRequest, storm, WEBSOCKET } from '../../all/storm/storm.cjs';
import { recordingLogger } from '../../support/log';
import { listFiles } from '../sources';
import { blocksOf, PAGES_WITH_CODE, ROOT } from './blocks';
import { closePages, runPage } from './run-page';
import { files } from '../../../src/gate/package.json';
import { PAGES, withSections } from '../../../scripts/docs';
import { REASONS } from '../../../src/gate/core/reasons';
import { GATE_OPTIONS, ISSUER_OPTIONS } from '../../../src/gate/verifier/read-options';
import { VARIABLES } from '../../../src/gate/env/variables';
import { PRESET_NAMES } from '../../../src/gate/token/presets';

describe('code', () => {
  afterAll(closePages);

  describe.each(PAGES_WITH_CODE)('the examples of %s', (page) => {
    it('are well-formed', () => {
      const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } }; // NestJS needs them
      for (const { source } of blocksOf(page))
        transformSync(source, { loader: 'ts', format: 'esm', target: 'node20', tsconfigRaw });
    });

    if (blocksOf(page).every(({ mode }) => mode !== 'run')) return;

    it('run, and their own tests pass', async () => {
      const { tests } = await runPage(page);
      for (const { run } of tests) await run();
    });
  });

  describe('the README', () => {
    it('shows what the first example responds with', async () => {
      const { apps, tests } = await runPage('README.md');
      const text = readFileSync(join(ROOT, 'README.md'), 'utf8');
      const [, shown = ''] = /```console\n[^]*?\n(HTTP[^]*?)\n```/.exec(text) ?? [];
      const [head = '', body = ''] = shown.split('\n\n');
      const [status = '', ...headers] = head.split('\n');

      const response = await request(apps[0] as Express).get('/v1/orders');
      expect(`HTTP/1.1 ${response.status} Unauthorized`).toBe(status);
      for (const header of headers) {
        const [, name = '', value] = /^([^:]+): (.*)$/.exec(header) ?? [];
        expect(response.get(name)).toBe(value);
      }
      expect(JSON.parse(body)).toEqual(response.body);
      expect(tests).toHaveLength(2);
    });
  });

  it('an app that signs its own tokens accepts them, and serves its key', async () => {
    const { apps } = await runPage('docs/migration.md');
    const own = request(apps.at(-1) as Express);
    const { access_token: token } = (await own.post('/login').expect(200)).body as { access_token: string };
    await own.get('/me').expect(401);
    await own.get('/me').auth(token, { type: 'bearer' }).expect(200, { user: 'user-17' });
    await own
      .get('/me')
      .auth(`${token.slice(0, -8)}AAAAAAAA`, { type: 'bearer' })
      .expect(401);
    expect((await own.get('/jwks.json')).body).toEqual({
      keys: [expect.not.objectContaining({ d: expect.anything() })],
    });
  });

  it('tokens of the testing kit pass the presets that the migration page names', async () => {
    const page = readFileSync(join(ROOT, 'docs/migration.md'), 'utf8');
    const [, names = ''] = /pass the\s+presets ([^.]*)\./.exec(page) ?? [];
    const presets = [...names.matchAll(/`([a-z0-9]+)`/g)].map(([, name]) => name as (typeof PRESET_NAMES)[number]);
    const { issuer, audience, options, token } = createTestIssuer();
    const headers = { authorization: `Bearer ${token({ scope: 'orders:read' })}` };
    for (const preset of PRESET_NAMES) {
      const gate = authenticate({ ...options, issuer, audience, preset, logger: recordingLogger() });
      const scopes = await gate.verify({ method: 'GET', url: '/', headers } as unknown as IncomingMessage).then(
        (auth) => auth?.scopes,
        () => undefined,
      );
      expect([preset, scopes?.join()]).toEqual([preset, presets.includes(preset) ? 'orders:read' : undefined]);
      await gate.close();
    }
  });

  describe('the recipes', () => {
    let app: Express;
    let issuer: TestIssuer;
    let recipes: Awaited<ReturnType<typeof runPage>>;
    beforeAll(async () => {
      recipes = await runPage('docs/recipes.md');
      [app, issuer] = [recipes.apps[0] as Express, recipes.issuers[0] as TestIssuer];
    });

    function get(path: string, token?: Parameters<TestIssuer['token']>[0]): request.Test {
      return token ? request(app).get(path).auth(issuer.token(token), { type: 'bearer' }) : request(app).get(path);
    }

    it('open a store to its own clients only', async () => {
      const till = { scope: 'orders:read', claims: { store: 'eu-1' } };
      await get('/stores/eu-1/orders', till).expect(200, { store: 'eu-1' });
      await get('/stores/eu-2/orders', till).expect(403);
    });

    it.each([
      ['by its claim', { claims: { location: 'berlin' } }],
      ['by its client id', { clientId: 'kiosk-7' }],
    ])('show a client the orders of its own location only, %s', async (_, options) => {
      const token = { scope: 'orders:read', ...options };
      const [own, foreign] = 'claims' in options ? ['1', '2'] : ['2', '1'];
      await get(`/orders/${own}`, token).expect(200);
      const notFound = (await get('/orders/3', token).expect(404)).body as object;
      await get(`/orders/${foreign}`, token).expect(404, notFound);
      await get('/orders/1', { scope: 'orders:read', clientId: 'kiosk-8' }).expect(404);
      await get('/orders/1', { claims: { location: 'berlin' } }).expect(403);
    });

    it('verify tokens by a strategy of passport, with the guards of the gate', async () => {
      await get('/reports', { scope: 'reports:read', clientId: 'office-1' }).expect(200, { caller: 'office-1' });
      await get('/reports', { scope: 'orders:read' }).expect(403);
      const missing = await get('/reports').expect(401);
      expect(missing.get('WWW-Authenticate')).toBe('Bearer realm="api"');
      // Not left to the next strategy.
      const expired = await get('/reports', { scope: 'reports:read', expired: true }).expect(401);
      expect(expired.get('WWW-Authenticate')).toContain('error="invalid_token"');
    });

    it('read a token from a cookie where the request has no Authorization', async () => {
      const cookie = (path: string, token: string): request.Test =>
        request(app).get(path).set('Cookie', `theme=dark; access_token=${token}`);
      const good = issuer.token({ scope: 'account:read', clientId: 'shop-1' });
      await cookie('/account', good).expect(200, { caller: 'shop-1' });
      await cookie('/account', good).set('Authorization', 'Bearer x').expect(401);
      await cookie('/account', issuer.token({ expired: true })).expect(401);
      await get('/account').expect(401);
    });

    it('read the variables into a configuration of the app', async () => {
      await get('/stock', { scope: 'stock:read' }).expect(200, { port: 3000, audience: 'https://api.example.com' });
      await get('/stock', { scope: 'orders:read' }).expect(403);
      await get('/stock').expect(401);
    });

    it('let pages of another origin read a refusal', async () => {
      const preflight = request(app).options('/shop').set('Origin', 'https://shop.example.com');
      await preflight.set('Access-Control-Request-Method', 'GET').expect(204);
      const response = await get('/shop').set('Origin', 'https://shop.example.com').expect(401);
      expect(response.get('Access-Control-Expose-Headers')).toBe('WWW-Authenticate,Retry-After');
    });

    it('show the menu without a token, and refuse bad tokens', async () => {
      await get('/menu').expect(200, { dishes: ['soup'], prices: 'public' });
      await get('/menu', {}).expect(200, { dishes: ['soup'], prices: 'yours' });
      await get('/menu', { expired: true }).expect(401);
      await request(app).put('/menu').expect(401);
    });

    it('send errors in the format of the app, with the status and the challenge of the gate', async () => {
      const response = await get('/legacy/orders', { expired: true }).expect(401, {
        error: 'The access token has expired.',
      });
      expect(response.get('WWW-Authenticate')).toContain('error="invalid_token"');
      await get('/legacy/orders', {}).expect(403);
    });

    it('open a WebSocket with a good token only, and close it with the gate', async () => {
      const { servers, opened, issuers } = recipes;
      const server = servers[0]!.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const refused = new ws.WebSocket(url);
      const [, response] = (await once(refused, 'unexpected-response')) as [unknown, IncomingMessage];
      expect([response.statusCode, response.headers['www-authenticate']]).toEqual([401, 'Bearer realm="api"']);
      refused.on('error', () => undefined).terminate();
      const authorization = `Bearer ${issuers[0]!.token({ clientId: 'till-1' })}`;
      const client = new ws.WebSocket(url, { headers: { authorization } });
      expect(String((await once(client, 'message'))[0])).toBe('hello till-1');
      const closed = once(client, 'close');
      await Promise.all(opened.map((one) => one.close()));
      expect((await closed).map(String)).toEqual(['4401', 'gate_closed']);
      server.close();
    });

    it('go on after connections were reset at random moments', async () => {
      const { apps, issuers, servers, opened } = await runPage('docs/recipes.md');
      const seed = randomInt(2 ** 31);
      console.log(`STORM_SEED=${seed}`);
      const Authorization = `Bearer ${issuers[0]!.token({ scope: 'orders:read kitchen:read' })}`;
      const server = servers[0]!.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const paths = ['/stores/eu-1/orders', '/menu', '/legacy/orders', '/shop', '/kitchen/events', '/socket'];
      const requests = paths.flatMap((path) => [
        rawRequest('GET', path),
        rawRequest('GET', path, { Authorization }),
        rawRequest('GET', path, { Authorization, ...WEBSOCKET }),
      ]);
      await storm({ port, connections: 300, requests, seed });
      await request(apps[0] as Express)
        .get('/menu')
        .set('Authorization', Authorization)
        .expect(200);
      const client = new ws.WebSocket(`ws://127.0.0.1:${port}`, { headers: { authorization: Authorization } });
      await once(client, 'message');
      client.terminate();
      await Promise.all(opened.map((one) => one.close()));
      server.close().closeAllConnections();
    });
  });
});

describe('pages', () => {
  const ROOT = resolve(__dirname, '../../..');
  /** Every page for users. */
  const DOCUMENTS = ['README.md', ...['deploy/observability', 'docs', 'examples'].flatMap(markdownIn)];

  const ALL_PAGES = [
    ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
    ...['bench', 'deploy', 'docs', 'examples', 'findings', 'src', 'test'].flatMap(markdownIn),
  ];

  function markdownIn(folder: string): readonly string[] {
    return listFiles(join(ROOT, folder), ['.md']).map((path) => relative(ROOT, path));
  }

  function read(page: string): string {
    return readFileSync(join(ROOT, page), 'utf8');
  }

  /** Cells of every table row of a page. */
  function rowsOf(page: string): readonly (readonly string[])[] {
    const lines = read(page)
      .split('\n')
      .filter((line) => line.startsWith('|'));
    return lines.map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
  }

  describe('docs/', () => {
    it.each(PAGES)('%s repeats the code as it is: else run npm run docs', (page) => {
      expect(withSections(read(page))).toBe(read(page));
    });

    it('documents the variables with their defaults, and no others', () => {
      const expected = VARIABLES.map(({ name, fallback, meaning, isSecret, sets }) => [
        isSecret ? `\`${name}\`, \`${name}_FILE\`` : `\`${name}\``,
        'text' in fallback ? `\`${fallback.text}\`` : fallback.words,
        meaning ?? expect.stringContaining(`option \`${sets}\``),
      ]);
      expect(rowsOf('docs/configuration.md').filter(([name = '']) => name.startsWith('`TILLGATE_'))).toEqual(expected);
    });

    it.each(Object.entries(REASONS))('says what the response to %s is, and what to do', (reason, row) => {
      const seen = 'error' in row ? `${row.status} \`${row.error}\`` : String(row.status);
      expect(read('docs/reasons.md')).toContain(`\n### ${reason}\n\n**${seen}.** `);
    });

    it.each(Object.keys({ ...GATE_OPTIONS, ...ISSUER_OPTIONS }))('has a row for the option %s', (option) => {
      const rows = rowsOf('docs/configuration.md').filter(
        ([name = '']) => name.replace(/^\[(.*)\]\(.*\)$/, '$1') === `\`${option}\``,
      );
      expect(rows).toEqual([[expect.any(String), expect.stringMatching(/./), expect.stringMatching(/./)]]);
    });
  });

  it.each(PRESET_NAMES)(
    'docs/issuers.md shows the options of %s and how to get a token, without a generation source',
    (name) => {
      const sections = read('docs/issuers.md').split(/^## /m);
      const [section = ''] = sections.filter((one) => one.includes(`preset: '${name}'`));
      const shown = name === 'rfc9068' ? sections.find((one) => one.startsWith('oidc-provider')) : section;
      const [, options] = /```js\n([^]*?)```/.exec(shown ?? '') ?? [];
      expect(options).toMatch(/^const gate = authenticate\(\{\n/);
      expect(options).not.toContain('generationSource');
      expect(shown).toMatch(/TOKEN=\$\(curl -s (?:.*\\\n)?.* -d scope=/);
    },
  );

  it('docs/ has fourteen pages for users', () => {
    const names = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
    expect(names).toHaveLength(14);
  });

  describe('the README', () => {
    it('has at most 10,000 characters', () => {
      expect(read('README.md').length).toBeLessThanOrEqual(10_000);
    });

    it('has no link to a web page: the project has no public URL yet', () => {
      expect(read('README.md')).not.toMatch(/\]\(https?:/);
    });
  });

  /** Those pages link to tests, which the package does not hold. */
  function isForMaintainers(page: string): boolean {
    return page.startsWith('docs/maintainers/') || page.startsWith('docs/decisions/');
  }

  /** Ids of the headings of a page, as GitHub makes them. */
  function anchorsOf(page: string): readonly string[] {
    const text = read(page).replace(/^```[^]*?^```$/gm, '');
    return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, '')
        .replace(/ /g, '-'),
    );
  }

  describe.each(ALL_PAGES)('the links of %s', (page) => {
    const targets = [...read(page).matchAll(/\]\((?!https?:)([^)]*)\)/g)].map(([, target = '']) => target);

    it('lead to files and headings that exist', () => {
      const lost = targets.filter((target) => {
        const [path = '', anchor] = target.split('#');
        // Packing copies pages of the repository next to that of a room.
        const isCopied = /^src\/\w+\/README\.md$/.test(page) && ['LICENSE', 'SECURITY.md'].includes(path);
        const file = path === '' ? page : isCopied ? path : relative(ROOT, join(ROOT, dirname(page), path));
        return !existsSync(join(ROOT, file)) || (anchor !== undefined && !anchorsOf(file).includes(anchor));
      });
      expect(lost).toEqual([]);
    });

    if (isForMaintainers(page) || !DOCUMENTS.includes(page)) return;

    it('lead to files of the package', () => {
      const outside = targets.filter((target) => {
        const file = relative(ROOT, join(ROOT, dirname(page), target.split('#')[0] ?? ''));
        return file !== '' && !target.startsWith('#') && !files.some((name) => `${file}/`.startsWith(`${name}/`));
      });
      expect(outside).toEqual([]);
    });
  });
});
