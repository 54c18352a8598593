import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import request from 'supertest';
import { createApp } from '../../src/app';
import type { AppOptions } from '../../src/app';
import { docsPage } from '../../src/app/docs/docs-page';
import { readSettings } from '../../src/settings/settings';
import { createTestIssuer } from '../../src/testing';
import { recordingLogger } from '../support/log';
import { contract } from './commerce/commerce-app';

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

  it.each(['swagger-ui-bundle.js', 'swagger-ui.css', 'docs.js', 'docs.css'])('serves %s from a file', async (name) => {
    const { headers } = await request(appFor()).get(`/docs/${name}`).expect(200);
    expect(headers['content-type']).toMatch(name.endsWith('css') ? /^text\/css/ : /javascript/);
  });

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
