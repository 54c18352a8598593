import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import request from 'supertest';
import { REASONS } from '../../src';
import { notFound, problemPages, problemTypesOf } from '../../src/app/pages';
import { contract } from './commerce/commerce-app';

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
