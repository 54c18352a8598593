import { inspect } from 'node:util';
import express from 'express';
import request from 'supertest';
import { AuthError, authInfo, requireAuthenticated } from '../../src';
import type { AuthInfo } from '../../src';
import { gateApp } from '../support/gate-app';
import type { GateAppOptions } from '../support/gate-app';
import { token, AUDIENCE, GENERATION, ISSUER, NOW } from '../support/issuer';

/** `AuthInfo` of the SDK, word for word. */
interface OfTheSdk {
  token: string;
  clientId: string;
  scopes: string[];
  expiresAt?: number;
  resource?: URL;
  extra?: Record<string, unknown>;
}

async function infoOf(raw: string | undefined, options: GateAppOptions = {}): Promise<AuthInfo | undefined> {
  let info: AuthInfo | undefined;
  const through = gateApp({
    ...options,
    routes: (app) =>
      void app.get('/v1/mcp', requireAuthenticated(), (req, res) => {
        // Both must compile: what a transport takes, and what an app reads afterwards.
        const forTransport: { auth?: OfTheSdk | undefined } = Object.assign(req, { auth: authInfo(req) });
        info = authInfo(req);
        res.json([forTransport.auth?.clientId, req.auth?.subject]);
      }),
  });
  const { body } = await through.get(raw, '/v1/mcp');
  if (info) expect(body).toEqual([info.clientId, info.subject]);
  return info;
}

describe('authInfo()', () => {
  it('has the members that the SDK of MCP reads, and those of req.auth', async () => {
    const raw = token({ claims: { scope: 'a b', exp: NOW + 60.9, sub: 'service-17' } });
    const info = await infoOf(raw, { resource: 'https://api.test/mcp' });
    const ofAuth = {
      issuer: ISSUER,
      clientId: 'pos-17',
      subject: 'service-17',
      scopes: ['a', 'b'],
      generation: GENERATION,
      expiresAtMs: (NOW + 60.9) * 1000,
      claims: expect.objectContaining({ aud: AUDIENCE }) as unknown,
    };
    expect(info).toEqual(expect.objectContaining({ ...ofAuth, expiresAt: NOW + 60 }));
    expect(info?.extra).toEqual(expect.objectContaining(ofAuth));
    expect(info?.resource).toEqual(new URL('https://api.test/mcp'));
    expect(info?.token).toBe(raw);
  });

  it('does not show its token where it is printed or written as JSON', async () => {
    const raw = token();
    const info = await infoOf(raw);
    for (const text of [inspect(info, { depth: 9 }), JSON.stringify(info), JSON.stringify({ ...info })]) {
      expect(text).toContain('pos-17');
      expect(text).not.toContain(raw.slice(-16));
    }
  });

  it('has no resource where the gate has none', async () => {
    expect(Object.keys((await infoOf(token())) ?? {})).not.toContain('resource');
  });

  it('is its own object: what a tool changes stays there', async () => {
    const through = gateApp({
      routes: (app) =>
        void app.get('/v1/mcp', requireAuthenticated(), (req, res) => {
          authInfo(req)?.scopes.push('admin');
          res.json([req.auth?.scopes, authInfo(req)?.scopes]);
        }),
    });
    const response = await through.get(token({ claims: { scope: 'a' } }), '/v1/mcp');
    expect(response.body).toEqual([['a'], ['a']]);
  });

  it.each<[string, string | undefined, GateAppOptions]>([
    ['a request without a token', undefined, { optional: true }],
    ['a gate that only reports', token(), { enforce: 'report' }],
  ])('is undefined for %s', async (_what, raw, options) => {
    let info: unknown = 'not called';
    const through = gateApp({
      ...options,
      routes: (app) =>
        void app.get('/v1/mcp', (req, res) => {
          info = authInfo(req);
          res.end();
        }),
    });
    await through.get(raw, '/v1/mcp');
    expect(info).toBeUndefined();
  });

  it('is undefined for a request that no gate has accepted, whatever its req.auth', async () => {
    const app = express().get('/', (req, res) => {
      Object.assign(req, { auth: { clientId: 'forged' } });
      res.json({ info: authInfo(req) ?? null });
    });
    expect((await request(app).get('/').set('Authorization', `Bearer ${token()}`)).body).toEqual({ info: null });
  });

  it('throws an AuthError where the header was removed after the gate', async () => {
    let thrown: unknown;
    const through = gateApp({
      routes: (app) =>
        void app.get('/v1/mcp', requireAuthenticated(), (req, res) => {
          delete req.headers.authorization;
          try {
            authInfo(req);
          } catch (error) {
            thrown = error;
          }
          res.end();
        }),
    });
    await through.get(token(), '/v1/mcp').expect(200);
    expect(thrown).toBeInstanceOf(AuthError);
    expect(thrown).toMatchObject({ reason: 'missing_token' });
  });
});
