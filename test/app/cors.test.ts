import request from 'supertest';
import { createApp } from '../../src/app';
import { readSettings } from '../../src/settings/settings';
import { createTestIssuer } from '../../src/testing';
import { recordingLogger } from '../support/log';
import { problemsOf } from '../settings/problems-of';

const SHOP = 'https://shop.test';
const issuer = createTestIssuer();
const token = issuer.token({ scope: 'orders:read' });

function appWith(env: Readonly<Record<string, string>> = {}) {
  const settings = readSettings({ TILLGATE_ISSUER: issuer.issuer, TILLGATE_CORS_ORIGINS: SHOP, ...env });
  return createApp({ settings, gate: issuer.options, logger: recordingLogger() });
}
const app = appWith();
afterAll(() => app.close());

const preflight = (origin: string) =>
  request(app.handler)
    .options('/v1/orders')
    .set({ Origin: origin, 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'authorization' });

describe('TILLGATE_CORS_ORIGINS', () => {
  it('lets pages of these origins send requests with a token, and read the headers of a refusal', async () => {
    const { status, headers } = await preflight(SHOP);
    expect([status, headers['access-control-allow-origin']]).toEqual([204, SHOP]);
    expect(headers['access-control-allow-headers']).toBe('authorization');
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
    for (const authorization of [`Bearer ${token}`, 'Bearer x']) {
      const response = await request(app.handler).get('/v1/orders').set({ authorization, origin: SHOP });
      expect(response.status).toBe(authorization.endsWith('x') ? 401 : 200);
      expect(response.headers['access-control-allow-origin']).toBe(SHOP);
      expect(response.headers['access-control-expose-headers']).toBe(
        'WWW-Authenticate,DPoP-Nonce,Retry-After,RateLimit,RateLimit-Policy,X-Request-Id',
      );
      expect(response.headers['vary']).toContain('Origin');
    }
  });

  it('lets no page of another origin', async () => {
    expect((await preflight('https://evil.test')).headers).not.toHaveProperty('access-control-allow-origin');
    const response = await request(app.handler)
      .get('/v1/orders')
      .set({ authorization: `Bearer ${token}`, origin: 'null' });
    expect(response.headers).not.toHaveProperty('access-control-allow-origin');
  });

  it('is off unless it is set: a preflight gets no permission and no data', async () => {
    const settings = readSettings({ TILLGATE_ISSUER: issuer.issuer });
    const closed = createApp({ settings, gate: issuer.options, logger: recordingLogger() });
    const response = await request(closed.handler)
      .options('/v1/orders')
      .set({ Origin: SHOP, 'Access-Control-Request-Method': 'GET' });
    expect(response.headers).not.toHaveProperty('access-control-allow-origin');
    await closed.close();
  });

  it.each(['*', 'shop.test', 'https://shop.test/', 'https://shop.test/page', 'https://SHOP.test', ' ', 'null'])(
    'refuses %j, which is no origin',
    (given) => {
      expect(problemsOf({ TILLGATE_CORS_ORIGINS: given })).toEqual([
        expect.stringContaining('expected origins such as https://shop.example.com, without a path'),
      ]);
    },
  );
});
