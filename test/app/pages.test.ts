import { mkdtempSync, rmSync, writeFileSync, readFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { text } from 'node:stream/consumers';
import express from 'express';
import request from 'supertest';
import { createApp } from '../../src/app';
import type { AppOptions } from '../../src/app';
import { docsPage } from '../../src/app/docs/docs-page';
import { readSettings } from '../../src/settings/settings';
import { createTestIssuer } from '../../src/testing';
import { recordingLogger } from '../support/log';
import { CONTRACT_FILE } from '../../src/testing/openapi/document';
import { contract } from './commerce/commerce-app';
import { frontPage, notFound, problemPages, problemTypesOf } from '../../src/app/pages';
import { REASONS } from '../../src';

describe('the documentation page', () => {
  const issuer = createTestIssuer();
  const CLIENT = { clientId: 'pos-terminal', clientSecret: 's3cret', scopes: ['orders:read'] };
  // As pnpm installs packages.
  const FOLDER = mkdtempSync(join(tmpdir(), '.pnpm-'));
  afterAll(() => rmSync(FOLDER, { recursive: true }));
  for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css']) writeFileSync(join(FOLDER, name), '/* Swagger UI */');

  const appFor = (options: object = {}, folder: string | undefined = FOLDER): express.Express => {
    const given = {
      contract: { ...contract, info: { title: 'Shop <API>' } },
      baseUrl: 'http://127.0.0.1:3000/shop',
      authUrl: 'http://127.0.0.1:4000/',
    };
    return express().use(docsPage({ ...given, ...options }, () => folder));
  };

  describe('GET /docs', () => {
    it('runs scripts and styles of this API only, and calls nothing but it and the token endpoint', async () => {
      const { headers, text } = await request(appFor()).get('/docs').expect(200);
      expect(headers['content-security-policy']).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; " +
          "connect-src 'self' http://127.0.0.1:4000; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      );
      expect(text).toContain('<title>Shop &lt;API&gt;</title>');
      expect(text).not.toMatch(/<style|style=|<script(?! defer src="\/shop\/docs\/)| on\w+=/);
    });

    it.each(['swagger-ui-bundle.js', 'swagger-ui.css', 'docs.js', 'docs.css'])(
      'serves %s from a file',
      async (name) => {
        const { headers } = await request(appFor()).get(`/docs/${name}`).expect(200);
        expect(headers['content-type']).toMatch(name.endsWith('css') ? /^text\/css/ : /javascript/);
      },
    );

    it('serves no other file of the folder', async () => {
      await request(appFor()).get('/docs/package.json').expect(404);
      await request(appFor()).get('/docs/..%2findex.ts').expect(404);
    });

    it('serves the contract with the URLs of this API', async () => {
      const { body } = await request(appFor()).get('/docs/openapi.json').expect(200);
      expect(body.servers).toEqual([{ url: '/shop' }]);
      expect(body.paths['/connect/token'].servers).toEqual([{ url: 'http://127.0.0.1:4000' }]);
      const flow = body.components.securitySchemes.oauth2.flows.clientCredentials;
      expect(flow.tokenUrl).toBe('http://127.0.0.1:4000/connect/token');
      expect(flow.scopes).toHaveProperty('orders:read');
      expect(Object.keys(body.paths).sort()).toEqual(Object.keys(contract.paths).sort());
    });

    it('names the URLs in the texts', async () => {
      const { body } = await request(appFor()).get('/docs/openapi.json').expect(200);
      expect(body.info).toEqual({ title: 'Shop <API>' });
      expect(body.tags[0].description).toBe('Where access tokens come from. Served by http://127.0.0.1:4000.');
      expect(JSON.stringify(body)).not.toMatch(/\{(auth|base)_url\}/);
    });

    it('takes another token endpoint, which is then not an operation of the contract', async () => {
      const app = appFor({ tokenUrl: 'https://login.test/oauth2/token' });
      const { body } = await request(app).get('/docs/openapi.json').expect(200);
      expect(body.components.securitySchemes.oauth2.flows.clientCredentials.tokenUrl).toBe(
        'https://login.test/oauth2/token',
      );
      expect(body.paths).not.toHaveProperty('/connect/token');
      expect((await request(app).get('/docs')).headers['content-security-policy']).toContain(
        "connect-src 'self' https://login.test;",
      );
    });

    it('says what to install where Swagger UI is not installed', async () => {
      const app = express().use(
        docsPage({ contract, baseUrl: 'http://127.0.0.1:3000', authUrl: undefined }, () => undefined),
      );
      const { text } = await request(app).get('/docs').expect(200);
      expect(text).toContain('npm install --save-dev --ignore-scripts swagger-ui-dist@5');
      expect(text).toContain('<a href="/openapi.yaml">');
    });
  });

  describe('the client that Authorize is filled in with', () => {
    const app = appFor({ client: () => Promise.resolve(CLIENT) });

    it('goes to this machine, and is not to be stored', async () => {
      const { body, headers } = await request(app).get('/docs/client.json').expect(200);
      expect(body).toEqual(CLIENT);
      expect(headers['cache-control']).toBe('no-store');
    });

    it.each([
      ['Host', 'evil.example'],
      ['Origin', 'http://evil.example'],
      ['Sec-Fetch-Site', 'cross-site'],
      ['X-Forwarded-For', '192.0.2.1'],
    ])('does not go to a caller with %s: %s', async (name, value) => {
      const { body } = await request(app).get('/docs/client.json').set(name, value).expect(200);
      expect(body).toEqual({});
    });

    it('is none by default', async () => {
      expect((await request(appFor()).get('/docs/client.json')).body).toEqual({});
    });
  });

  describe('createApp()', () => {
    const served = async (env: Record<string, string>, docs?: AppOptions['docs']): Promise<number> => {
      const settings = readSettings({ TILLGATE_AUTH_URL: 'https://login.test', ...env });
      const app = createApp({ settings, gate: issuer.options, logger: recordingLogger(), docs });
      const { status } = await request(app.handler).get('/docs');
      const { body } = await request(app.handler).get('/').accept('json');
      expect('docs' in body).toBe(status === 200);
      await app.close();
      return status;
    };

    it('serves the page, and links to it from the front page', async () => {
      expect(await served({})).toBe(200);
    });

    it('does not in production', async () => {
      expect(await served({ NODE_ENV: 'production' })).toBe(404);
    });

    it('does as `docs` says', async () => {
      expect(await served({}, false)).toBe(404);
      expect(await served({ NODE_ENV: 'production' }, true)).toBe(200);
    });
  });
});

describe('the front page', () => {
  const BASE_URL = 'https://api.test/shop';
  const LINKS = {
    openapi: `${BASE_URL}/openapi.yaml`,
    protected_resource_metadata: `${BASE_URL}/.well-known/oauth-protected-resource`,
    health: `${BASE_URL}/readyz`,
  };
  const appFor = (issuer?: string): express.Express =>
    express().use(frontPage({ contract, file: CONTRACT_FILE, baseUrl: `${BASE_URL}/`, issuer, docs: false }));

  it('GET / says what this is and where to go, as JSON', async () => {
    const { body, headers } = await request(appFor('https://login.test')).get('/').accept('json').expect(200);
    expect(body).toEqual({ name: 'Tillgate commerce API', ...LINKS, authorization_server: 'https://login.test' });
    expect(headers['vary']).toBe('Accept');
  });

  it('GET / names no authorization server where none is known', async () => {
    const { body } = await request(appFor()).get('/').accept('json').expect(200);
    expect(body).toEqual({ name: 'Tillgate commerce API', ...LINKS });
  });

  it('GET / is a page for browsers, whose only style is the one that its policy allows', async () => {
    const { text: html, headers } = await request(appFor('https://login.test/?a="><script>&b'))
      .get('/')
      .accept('html')
      .expect(200);
    for (const url of Object.values(LINKS)) expect(html).toContain(`<a href="${url}"><code>${url}</code></a>`);
    expect(html).toContain('https://login.test/?a=&quot;&gt;&lt;script&gt;&amp;b');
    expect(html).not.toContain('<script');
    const [, style = ''] = /<style>(.*)<\/style>/s.exec(html) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toContain(`style-src 'sha256-${hash}'`);
  });

  const asText = (res: unknown, done: (error: Error | null, body: unknown) => void): void =>
    void text(res as NodeJS.ReadableStream)
      .then((body): void => done(null, body))
      .catch((error: Error) => done(error, undefined));

  it('serves the contract as YAML and as JSON', async () => {
    const app = appFor();
    const yaml = await request(app).get('/openapi.yaml').buffer(true).parse(asText).expect(200);
    expect(yaml.headers['content-type']).toMatch(/^application\/yaml/);
    expect(yaml.body).toBe(readFileSync(join(__dirname, '../../openapi.yaml'), 'utf8'));
    const json = await request(app).get('/openapi.json').expect(200);
    expect(json.body).toEqual(contract);
  });
});

const app = express().use(problemPages(), notFound('https://api.test/problems/'));

/** Every code that appears in the scaffold and in what the gate responds with. */
function codesInSource(): readonly string[] {
  const files = ['app', 'app/commerce', 'express'].flatMap((folder) => {
    const path = join(__dirname, '../../src', folder);
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [join(path, entry.name)] : [],
    );
  });
  const literals = files.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/\bcode: (.*)/g)]);
  return literals.flatMap(([, text = '']) => [...text.matchAll(/'([a-z_]+)'/g)].map(([, code = '']) => code));
}

function codesInContract(): readonly string[] {
  const { components } = contract as unknown as { components: { schemas: { ProblemCode: { enum: string[] } } } };
  return components.schemas.ProblemCode.enum;
}

describe('the page about a problem', () => {
  const codes = [...new Set([...Object.keys(REASONS), 'invalid_token', ...codesInSource(), ...codesInContract()])];

  it.each(codes)('exists for %s, as HTML and as JSON', async (code) => {
    const html = await request(app).get(`/problems/${code}`);
    expect(html.status).toBe(200);
    expect(html.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[\w+/]+='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
      ),
      vary: 'Accept',
    });
    expect(html.text).toContain(`<h1>Problem: ${code}</h1>`);
    expect(html.text).not.toMatch(/<(?!\/?(!doctype|html|meta|title|style|h1|h2|p)\b)/);

    const json = await request(app).get(`/problems/${code}`).accept('json');
    expect(json.body).toEqual({
      code,
      cause: expect.stringMatching(/\.$/),
      caller: expect.any(String),
      operator: expect.any(String),
    });
  });

  it('covers the codes of the gate and of the scaffold', () => {
    expect(codes).toEqual(expect.arrayContaining(['superseded', 'rate_limited', 'draining', 'method_not_allowed']));
  });

  it('escapes its text', async () => {
    const { text } = await request(app).get('/problems/missing_token');
    expect(text).toContain('Bearer &lt;ACCESS_TOKEN&gt;');
  });

  it.each(['nothing', '__proto__', 'constructor', '%3Cscript%3E'])('does not exist for %s', async (code) => {
    const response = await request(app).get(`/problems/${code}`);
    expect(response.status).toBe(404);
    expect(response.body.code).toBe('not_found');
  });

  it('is below the base URL', () => {
    expect(problemTypesOf('https://api.example.com')).toBe('https://api.example.com/problems/');
    expect(problemTypesOf('https://example.com/api/')).toBe('https://example.com/api/problems/');
  });
});
