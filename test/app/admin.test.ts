import request from 'supertest';
import { startApi } from '../../src/app';
import { createAdminApp, createMetrics } from '../../src/app/admin';
import type { Readiness } from '../../src/app';
import { readSettings } from '../../src/settings/settings';
import { createTestIssuer, expectProblem } from '../../src/testing';

const PROBLEM_TYPES = 'https://api.test/problems/';
const READY: Readiness = { ready: true, draining: false, components: { keys: 'fresh' } };

describe('the admin app', () => {
  it('counts requests by method, status and reason', async () => {
    const keys = { state: 'fresh', keys: 1 } as const;
    const generations = {
      source: 'silent',
      ageMs: 1_500,
      silentMs: 901_000,
      floors: 1,
      reads: 1,
      failures: 0,
    } as const;
    const issuers = [
      { issuer: 'https://login.test', keys, generations },
      { issuer: 'https://other.test', keys },
    ];
    const metrics = createMetrics(
      () => true,
      () => ({ ready: false, issuers }),
    );
    const app = createAdminApp(() => READY, metrics, PROBLEM_TYPES);
    const who = { requestId: 'a', issuer: 'https://login.test', clientId: 'b' };
    const event = { ...who, path: '/v1/orders', durationMs: 20, detail: 'c', aborted: false };

    metrics?.observe({ ...event, method: 'GET', status: 200, reason: undefined });
    metrics?.observe({ ...event, method: 'GET', status: 401, reason: 'superseded' });
    metrics?.observe({ ...event, method: 'GET', status: 401, reason: 'superseded' });
    const response = await request(app).get('/metrics');

    expect(response.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(response.text).toContain('tillgate_requests_total{method="GET",status="200",reason=""} 1\n');
    expect(response.text).toContain('tillgate_requests_total{method="GET",status="401",reason="superseded"} 2\n');
    expect(response.text).toContain('tillgate_request_duration_seconds_count 3\n');
    expect(response.text).toContain('tillgate_ready 1\n');
    expect(response.text).toContain('tillgate_generations_staleness_seconds{issuer="https://login.test"} 1.5\n');
    expect(response.text).toContain('tillgate_generations_silence_seconds{issuer="https://login.test"} 901\n');
    expect(response.text).not.toContain('other.test');
    expect(response.text).toContain('process_cpu_seconds_total');
    expect(response.text).not.toMatch(/orders|client/);
  });

  it('says what to install when prom-client is missing', async () => {
    const app = createAdminApp(() => READY, undefined, PROBLEM_TYPES);

    const response = await request(app).get('/metrics');

    const type = `${PROBLEM_TYPES}metrics_unavailable`;
    expectProblem(response, { status: 503, code: 'metrics_unavailable', type });
    expect(response.body.detail).toBe(
      'Metrics are made by prom-client, which is not installed: npm install prom-client@15',
    );
  });

  it('serves health, metrics and nothing else', async () => {
    const app = createAdminApp(() => READY, undefined, PROBLEM_TYPES);

    expect((await request(app).get('/livez')).status).toBe(200);
    expect((await request(app).get('/readyz')).status).toBe(200);
    const type = `${PROBLEM_TYPES}not_found`;
    expectProblem(await request(app).get('/v1/orders'), { status: 404, code: 'not_found', type });
  });
});

describe('startApi', () => {
  const issuer = createTestIssuer();

  function start(env: Record<string, string>) {
    const settings = readSettings({
      TILLGATE_AUTH_URL: 'https://login.test',
      TILLGATE_PORT: '0',
      TILLGATE_LOG_LEVEL: 'silent',
      ...env,
    });
    return startApi({ settings, gate: issuer.options });
  }

  it('listens on both ports, and counts the requests to the API', async () => {
    const api = await start({ TILLGATE_ADMIN_PORT: '0' });

    expect((await fetch(`${api.url}/v1/orders`)).status).toBe(401);
    const metrics = await (await fetch(`${api.adminUrl}/metrics`)).text();

    expect(metrics).toContain('tillgate_requests_total{method="GET",status="401",reason="missing_token"} 1\n');
    await api.close();
  });

  it('has no admin port by default', async () => {
    const api = await start({});

    expect(api.adminUrl).toBeUndefined();
    expect((await fetch(`${api.url}/metrics`)).status).toBe(404);
    await api.close();
  });

  it('stops in less than a second with idle keep-alive connections, not ready from the first moment', async () => {
    const api = await start({});
    await Promise.all([1, 2, 3].map(async () => (await fetch(`${api.url}/livez`)).text()));

    const startedMs = performance.now();
    const closed = api.close();

    expect(api.app.readiness()).toMatchObject({ ready: false, draining: true });
    await closed;
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  it('closes the API when the admin port is taken', async () => {
    const other = await start({});
    const taken = new URL(other.url).port;

    await expect(start({ TILLGATE_ADMIN_PORT: taken })).rejects.toThrow(
      `cannot listen on http://127.0.0.1:${taken}: another process does; stop it, or set TILLGATE_ADMIN_PORT to a free port`,
    );
    await other.close();
  });
});
