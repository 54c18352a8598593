import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { text } from 'node:stream/consumers';
import express from 'express';
import request from 'supertest';
import { problemHandler, REASONS } from '../../src/gate';
import { loadContract } from '../../src/app/contract';
import { docsPage } from '../../src/app/docs-page';
import { frontPage, problemPages } from '../../src/app/pages';
import { appScene, settingsFor } from './app-scene';

const contract = loadContract();

describe('the API reference page', () => {
  const settings = settingsFor({
    TILLGATE_BASE_URL: 'http://127.0.0.1:3000/shop',
    TILLGATE_AUTH_URL: 'http://127.0.0.1:4000/',
  });
  const app = express().use(docsPage({ ...contract, info: { title: 'Shop' } }, settings));

  it('runs scripts of this API only, and calls nothing but it and the token endpoint', async () => {
    const { headers, text } = await request(app).get('/docs/').expect(200);
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
        "connect-src 'self' http://127.0.0.1:4000; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(text).toContain('<title>Shop</title>');
    expect(text).not.toMatch(/<script(?! src="\.\/)| on\w+=|https?:\/\/(?!www\.w3\.org)/);
  });

  it('is for reading', async () => {
    const sent = express().use(
      app,
      (error: { status: number }, _req: unknown, res: express.Response, _next: unknown) => {
        res.sendStatus(error.status);
      },
    );
    await request(sent).post('/docs/').expect(405).expect('Allow', 'GET, HEAD');
  });

  it('is found without the slash', async () => {
    await request(app).get('/docs').expect(301).expect('Location', '/docs/');
  });

  it.each(['swagger-ui-bundle.js', 'swagger-ui-standalone-preset.js', 'swagger-ui.css'])('serves %s', async (name) => {
    const { headers } = await request(app).get(`/docs/${name}`).expect(200);
    expect(headers['content-type']).toMatch(name.endsWith('css') ? /^text\/css/ : /javascript/);
  });

  it('shows the contract with the URLs of this API', async () => {
    const { text } = await request(app).get('/docs/swagger-ui-init.js').buffer().expect(200);
    const [, json = ''] = /var options = ([^]*?);\n {2}url = /.exec(text) ?? [];
    const { swaggerDoc: body } = JSON.parse(json);
    expect(body.servers).toEqual([{ url: '/shop' }]);
    expect(body.paths['/connect/token'].servers).toEqual([{ url: 'http://127.0.0.1:4000' }]);
    const flow = body.components.securitySchemes.oauth2.flows.clientCredentials;
    expect(flow.tokenUrl).toBe('http://127.0.0.1:4000/connect/token');
    expect(Object.keys(body.paths).sort()).toEqual(Object.keys(contract.paths).sort());
    expect(body.tags[0].description).toBe('Where access tokens come from. Served by http://127.0.0.1:4000.');
    expect(JSON.stringify(body)).not.toMatch(/\{(auth|base)_url\}/);
  });

  it.each([
    ['development', 200],
    ['production', 404],
  ])('is there in %s: %i, and the front page says so', async (NODE_ENV, expected) => {
    const { app } = appScene({ NODE_ENV });
    await request(app).get('/docs/').expect(expected);
    const { body } = await request(app).get('/').accept('json');
    expect('docs' in body).toBe(expected === 200);
  });
});

describe('the front page', () => {
  const BASE_URL = 'https://api.test/shop';
  const LINKS = {
    openapi: `${BASE_URL}/openapi.yaml`,
    protected_resource_metadata: `${BASE_URL}/.well-known/oauth-protected-resource`,
    health: `${BASE_URL}/readyz`,
  };
  const appFor = (issuer = 'https://login.test'): express.Express => {
    const settings = settingsFor({ TILLGATE_BASE_URL: `${BASE_URL}/`, NODE_ENV: 'production' });
    return express().use(frontPage(contract, { ...settings, issuer }));
  };

  it('GET / says what this is and where to go, as JSON', async () => {
    const { body, headers } = await request(appFor('https://login.test')).get('/').accept('json').expect(200);
    expect(body).toEqual({ name: 'Tillgate commerce API', ...LINKS, authorization_server: 'https://login.test' });
    expect(headers['vary']).toBe('Accept');
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

const app = express()
  .use(problemPages())
  .use((_req, _res, next) => next({ status: 404 }))
  .use(problemHandler());

/** Every code that appears in the scaffold and in what the gate responds with. */
function codesInSource(): readonly string[] {
  const files = ['app', 'app/commerce', 'gate/express'].flatMap((folder) => {
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
});
