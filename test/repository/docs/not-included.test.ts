import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import request from 'supertest';
import certificates from '../../support/certificates.json';
import type { KeyStore } from '../../../src/gate';
import type { TestIssuer } from '../../../src/testing';
import { blocksOf } from './blocks';
import { closePages, runPage } from './run-page';

const fingerprintOf = (certificate: string | Buffer): string => new X509Certificate(certificate).fingerprint256;

const PAGE = 'docs/not-included.md';

describe(`the recipes of ${PAGE}`, () => {
  let page: Awaited<ReturnType<typeof runPage>>;
  /** The introspection endpoint of the page. */
  const calls: (readonly [url: string, init: RequestInit])[] = [];
  let introspection: object | undefined;
  beforeAll(async () => {
    page = await runPage(PAGE, (...call) => {
      // Gates with a key store fetch metadata.
      if (!call[0].endsWith('/connect/introspect') || !introspection) return Promise.reject(new Error('down'));
      calls.push(call);
      return Promise.resolve(Response.json(introspection));
    });
  });
  afterAll(closePages);

  function send(method: 'get' | 'post', path: string, token?: Parameters<TestIssuer['token']>[0]): request.Test {
    const sent = request(page.apps[0]!)[method](path);
    return token ? sent.auth(page.issuers[0]!.token(token), { type: 'bearer' }) : sent;
  }

  it('have 20 lines at most, but for imports', () => {
    const lines = blocksOf(PAGE).map(
      ({ source }) =>
        source
          .replace(/^import .*\n/gm, '')
          .trim()
          .split('\n').length,
    );
    expect(Math.max(...lines)).toBeLessThanOrEqual(20);
  });

  it('security events: refuse the tokens that were issued before an event', async () => {
    const before = page.issuers[0]!.token({ clientId: 'till-1', scope: 'orders:read' });
    const orders = () => request(page.apps[0]!).get('/orders').auth(before, { type: 'bearer' });
    await orders().expect(200);
    const event = { clientId: 'till-1', changedAtMs: Date.now() };
    await send('post', '/events', { scope: 'orders:read' }).send(event).expect(403);
    await send('post', '/events', { scope: 'events:write' }).send(event).expect(202);
    await orders().expect(401, /superseded/);
  });

  it('step-up: a challenge unless the user has authenticated strongly and recently', async () => {
    const now = Math.floor(Date.now() / 1000);
    const refund = (claims: object) => send('post', '/refunds', { scope: 'payments:refund', claims: { ...claims } });
    await refund({ acr: 'urn:example:mfa', auth_time: now - 200 }).expect(204);
    for (const claims of [{}, { acr: 'urn:example:mfa', auth_time: now - 400 }, { acr: '1', auth_time: now }]) {
      const response = await refund(claims).expect(401);
      expect(response.get('WWW-Authenticate')).toBe(
        'Bearer error="insufficient_user_authentication", acr_values="urn:example:mfa", max_age="300"',
      );
    }
  });

  it.each([
    ['orders:write', 200],
    ['order.read', 200],
    ['menus:read', 403],
  ])('scopes that imply or replace: %s gets %i', async (scope, status) => {
    await send('get', '/mapped/orders', { scope }).expect(status);
  });

  it('scopes that depend on the request: a 403 names them', async () => {
    const granted = { scope: 'orders:read items:read' };
    await send('post', '/exports', granted)
      .send({ tables: ['orders', 'items'] })
      .expect(202);
    const response = await send('post', '/exports', granted)
      .send({ tables: ['orders', 'customers'] })
      .expect(403);
    expect(response.get('WWW-Authenticate')).toContain('scope="orders:read customers:read"');
    await send('post', '/exports').send({ tables: [] }).expect(401);
  });

  it('JWTs that the issuer confirms: refused when it says no, or is down', async () => {
    const payout = () => send('post', '/payouts', { scope: 'payouts:write' });
    introspection = { active: true };
    await payout().expect(204);
    const [url, { headers, body }] = calls.at(-1)!;
    expect(url).toBe('https://login.example.com/connect/introspect');
    expect(headers).toEqual({ authorization: `Basic ${Buffer.from('orders-api:secret').toString('base64')}` });
    expect((body as URLSearchParams).get('token')).toMatch(/^ey/);
    introspection = { active: false };
    await payout().expect(403);
    introspection = undefined;
    await payout().expect(500);
  });

  it('private_key_jwt: an assertion takes the place of the secret', async () => {
    const response = { active: true, client_id: 'till-1', scope: 'orders:read', sub: 'till-1', token_type: 'Bearer' };
    const times = { iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 60 };
    const { issuer, audience } = page.issuers[0]!.options as { issuer: string; audience: string };
    introspection = { ...response, ...times, iss: issuer, aud: audience, generation: 1 };
    await request(page.apps[0]!).get('/opaque/orders').auth('opaque-token', { type: 'bearer' }).expect(200);
    const { headers, body } = calls.at(-1)![1];
    const form = body as URLSearchParams;
    expect(new Headers(headers).has('authorization')).toBe(false);
    expect(form.get('token')).toBe('opaque-token');
    const [head = '', claims = '', signature = ''] = form.get('client_assertion')!.split('.');
    expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toEqual({ alg: 'RS256', typ: 'JWT' });
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
      iss: 'orders-api',
      sub: 'orders-api',
    });
    expect(signature).toHaveLength(342);
  });

  it('TLS in the server: renews its certificate once both files fit, and keeps the one before until then', async () => {
    const server = page.servers[0]!.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const options = { host: '127.0.0.1', port, path: '/orders', rejectUnauthorized: false, agent: false };
    /** The status of a new connection, and whose certificate it shows. */
    async function look(): Promise<unknown> {
      const [response] = (await once(httpsRequest(options).end(), 'response')) as [IncomingMessage];
      const { raw } = (response.socket as TLSSocket).getPeerCertificate();
      response.destroy();
      return [response.statusCode, fingerprintOf(raw)];
    }
    const { server: before, 'till-1': renewed } = certificates;
    const [kept, fresh] = [before, renewed].map(({ certificate }) => [401, fingerprintOf(certificate)]);
    expect(await look()).toEqual(kept);
    const { files, intervals, warnings } = page;
    const steps = [
      () => files.set('tls.crt', renewed.certificate), // the key is still the old one
      () => files.delete('tls.key'),
      () => files.set('tls.key', renewed.privateKey.slice(0, 40)), // half written
      () => files.set('tls.key', renewed.privateKey),
    ];
    const seen: unknown[] = [];
    for (const step of steps) {
      step();
      for (const task of intervals) task();
      seen.push(await look());
    }
    expect(seen).toEqual([kept, kept, kept, fresh]);
    expect(warnings.map(([text]) => text)).toEqual(
      Array(3).fill('the certificate could not be renewed, the one before stays'),
    );
    server.close();
  });

  it('rate limits: no request is refused while Redis is down', async () => {
    await send('get', '/limited', {}).expect(200);
  });

  it.each([
    ['files', 0],
    ['Redis', 1],
  ])('key sets in %s: load what was saved last, and nothing before', async (_name, index) => {
    const stores = page.options.flatMap(({ keyStore }) => (keyStore ? [keyStore] : []));
    const { load, save } = stores[index] as KeyStore;
    const issuer = 'https://one.example.com';
    const loaded = [await load(issuer)];
    for (const record of ['first', 'second']) {
      await save(issuer, record);
      loaded.push(await load(issuer));
    }
    expect(loaded).toEqual([undefined, 'first', 'second']);
  });

  it('the reference page runs scripts of the app only', async () => {
    const response = await send('get', '/reference').expect(200, /data-url="\/openapi\.yaml"/);
    expect(response.get('Content-Security-Policy')).toMatch(/^script-src 'self';/);
    expect([...response.text.matchAll(/<script[^>]* src="([^"]*)"/g)].map(([, src]) => src)).toEqual(['/reference.js']);
  });
});
