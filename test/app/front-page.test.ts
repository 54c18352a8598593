import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import express from 'express';
import request from 'supertest';
import { frontPage } from '../../src/app/pages';
import { contract } from './commerce/commerce-app';

const BASE_URL = 'https://api.test/shop';
const LINKS = {
  openapi: `${BASE_URL}/openapi.yaml`,
  protected_resource_metadata: `${BASE_URL}/.well-known/oauth-protected-resource`,
  health: `${BASE_URL}/readyz`,
};
const appFor = (issuer?: string): express.Express =>
  express().use(frontPage({ contract, baseUrl: `${BASE_URL}/`, issuer, docs: false }));

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
