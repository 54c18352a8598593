import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import express from 'express';
import request from 'supertest';
import { protectedResourceMetadata } from '../../src';
import { gateApp } from '../support/gate-app';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const options = { resource: 'https://api.test', authorizationServers: ['https://login.test'] };

function appWith(given: Parameters<typeof protectedResourceMetadata>[0]): express.Express {
  return express().use(protectedResourceMetadata(given), (_req, res) => void res.status(404).end('next'));
}

describe('protectedResourceMetadata() (RFC 9728)', () => {
  it('serves the metadata without a token, cacheable', async () => {
    const response = await request(appWith({ ...options, scopes: ['orders:read', 'orders:write'] })).get(WELL_KNOWN);
    expect(response.status).toBe(200);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.headers['cache-control']).toBe('public, max-age=300');
    expect(response.body).toEqual({
      resource: 'https://api.test',
      authorization_servers: ['https://login.test'],
      bearer_methods_supported: ['header'],
      scopes_supported: ['orders:read', 'orders:write'],
    });
  });

  it('says how tokens are bound where the options of the gate say so', async () => {
    const dpop = { required: true, algorithms: ['ES256', 'EdDSA'] } as const;
    const { body } = await request(appWith({ ...options, dpop, mtls: {} })).get(WELL_KNOWN);
    expect(body).toMatchObject({
      dpop_signing_alg_values_supported: ['ES256', 'EdDSA', 'Ed25519'],
      dpop_bound_access_tokens_required: true,
      tls_client_certificate_bound_access_tokens: true,
    });
    const plain = await request(appWith(options)).get(WELL_KNOWN);
    expect(Object.keys(plain.body)).toEqual(['resource', 'authorization_servers', 'bearer_methods_supported']);
  });

  it('leaves scopes out where none are given', async () => {
    const { body } = await request(appWith(options)).get(WELL_KNOWN);
    expect(body).not.toHaveProperty('scopes_supported');
  });

  it('serves a resource with a path at the address of section 3.1, and at the plain one', async () => {
    const app = appWith({ ...options, resource: 'https://api.test/shop/' });
    await request(app).get(`${WELL_KNOWN}/shop`).expect(200);
    await request(app).get(`${WELL_KNOWN}?x=1`).expect(200);
    await request(app).get(`${WELL_KNOWN}/other`).expect(404, 'next');
  });

  it('responds to HEAD with the headers alone, and leaves other methods and paths to what follows', async () => {
    const app = appWith(options);
    const head = await request(app).head(WELL_KNOWN).expect(200);
    expect(Number(head.headers['content-length'])).toBeGreaterThan(50);
    await request(app).post(WELL_KNOWN).expect(404, 'next');
    await request(app).get(`${WELL_KNOWN}x`).expect(404, 'next');
  });

  it('is where the challenge of a gate says, and tells route audits its paths', async () => {
    const resource = 'https://api.test/shop';
    const challenge = (await gateApp({ resource }).get()).headers['www-authenticate'] as string;
    const { pathname, origin } = new URL(/resource_metadata="([^"]*)"/.exec(challenge)?.[1] ?? '');
    expect(origin).toBe('https://api.test');
    await request(appWith({ ...options, resource }))
      .get(pathname)
      .expect(200);
    const shownBy = ({ name, serves }: { name: string; serves?: unknown }): unknown => [name, serves];
    const paths = [WELL_KNOWN, `${WELL_KNOWN}/shop`];
    const middleware = protectedResourceMetadata({ ...options, resource: `${resource}/` });
    expect(shownBy(middleware)).toEqual(['protectedResourceMetadata', paths]);
    expect(shownBy(protectedResourceMetadata(options))).toEqual(['protectedResourceMetadata', [WELL_KNOWN]]);
  });

  it('sends no body after HEAD, also where Node is asked to refuse one', async () => {
    const server = createServer({ rejectNonStandardBodyWrites: true }, appWith(options) as RequestListener);
    await request(server).head(WELL_KNOWN).expect(200);
  });

  it('leaves a response that has been sent to what follows, also without Express', async () => {
    const middleware = protectedResourceMetadata(options);
    let passed = 0;
    const server = createServer((req, res) => {
      res.end('first');
      middleware(req, res, () => passed++);
    });
    const { text } = await request(server).get(WELL_KNOWN);
    expect([text, passed]).toEqual(['first', 1]);
  });

  it.each(['http://api.internal', 'https://api.test/shop?tenant=1'])('accepts the resource %s', async (resource) => {
    const { body } = await request(appWith({ ...options, resource })).get(WELL_KNOWN);
    expect(body.resource).toBe(resource);
  });

  it.each<[Record<string, unknown>, string]>([
    ...['https://user@api.test', 'https://:secret@api.test'].map(
      (resource) =>
        [
          { resource },
          'option "resource" must be an http(s) URL without a fragment, user name and password, got "https://api.test/"',
        ] as [Record<string, unknown>, string],
    ),
    [
      { resource: 'https://[' },
      'option "resource" must be an http(s) URL without a fragment, user name and password, got "https://["',
    ],
    [
      { resource: 'x-https://api.test' },
      'option "resource" must be an http(s) URL without a fragment, user name and password, got "x-https://api.test"',
    ],
    [
      { authorizationServers: 'https://login.test' },
      'option "authorizationServers" must be an array of at least one issuer, got "https://login.test"',
    ],
    [
      { authorizationServers: ['https://login.test', 1] },
      'option "authorizationServers" must be an array of at least one issuer, got an array of 2',
    ],
    [{ scopes: ['a', 'b c'] }, 'option "scopes" must be an array of scopes, got an array of 2'],
    [
      { resource: undefined },
      'option "resource" must be an http(s) URL without a fragment, user name and password, got undefined',
    ],
    [
      { resource: 'api.test' },
      'option "resource" must be an http(s) URL without a fragment, user name and password, got "api.test"',
    ],
    [
      { resource: 'https://api.test#x' },
      'option "resource" must be an http(s) URL without a fragment, user name and password, got "https://api.test/"',
    ],
    [
      { authorizationServers: undefined },
      'option "authorizationServers" must be an array of at least one issuer, got undefined',
    ],
    [
      { authorizationServers: [] },
      'option "authorizationServers" must be an array of at least one issuer, got an empty array',
    ],
    [
      { authorizationServers: [1] },
      'option "authorizationServers" must be an array of at least one issuer, got an array of 1',
    ],
    [{ scopes: 'orders:read' }, 'option "scopes" must be an array of scopes, got "orders:read"'],
    [{ scopes: ['a b'] }, 'option "scopes" must be an array of scopes, got an array of 1'],
    [{ scope: ['a'] }, 'unknown option "scope"; did you mean "scopes"?'],
  ])('refuses %j at construction', (changes, message) => {
    expect(() => protectedResourceMetadata({ ...options, ...changes })).toThrow(
      new TypeError(`protectedResourceMetadata(): ${message}`),
    );
  });
});
