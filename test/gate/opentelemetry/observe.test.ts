import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import type { DataPoint } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import express from 'express';
import { requireScope } from '../../../src/gate/index';
import { REASONS } from '../../../src/gate/core/reasons';
import { observe } from '../../../src/gate/opentelemetry';
import { METRIC_ROWS } from '../../../scripts/metric-rows';
import { pass } from '../../all/work/requests';
import { gateApp, getFrom } from '../../support/gate-app';
import type { GateAppOptions } from '../../support/gate-app';
import { memoryGenerations } from '../../../src/gate/generation';
import { token, ISSUER, NOW_MS } from '../../support/issuer';
import { boundToken, callerKey, dpopApp, proof } from '../../support/dpop';
import { introspectingGate } from '../../support/introspection';
import { eventually } from '../../support/key-server';
import { testKey } from '../../support/keys';
import { remoteGate } from '../../support/remote-gate';

class Reader extends MetricReader {
  protected override onForceFlush = () => Promise.resolve();
  protected override onShutdown = () => Promise.resolve();
}

describe('observe()', () => {
  const reader = new Reader();
  const spans = new InMemorySpanExporter();
  let end = (): void => undefined;

  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
    end = observe();
  });
  afterAll(() => {
    end();
    for (const api of [context, trace, metrics]) api.disable();
  });
  beforeEach(() => spans.reset());

  const opened: { close(): unknown }[] = [];
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });

  /** What the SDK collects of one metric: its values, or the counts of a histogram, by attributes. */
  async function collected(name: string): Promise<readonly (readonly [attributes: object, value: unknown])[]> {
    const { resourceMetrics } = await reader.collect();
    const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    const found = all.filter(({ descriptor }) => descriptor.name === name);
    const points = found.flatMap(({ dataPoints }): DataPoint<unknown>[] => dataPoints);
    return points.map(({ attributes, value }) => [attributes, (value as { readonly count?: number }).count ?? value]);
  }

  /** An app behind a server span, as an instrumentation makes it. */
  function traced(options: GateAppOptions = {}) {
    const made = gateApp(options);
    opened.push(made.gate);
    const app = express();
    app.use((_req, res, next) => {
      trace.getTracer('http').startActiveSpan('GET', (span) => {
        res.once('finish', () => span.end());
        next();
      });
    });
    app.use('/v1', made.gate);
    app.get('/v1/orders/:id', requireScope('orders:read'), (_req, res) => void res.json([]));
    app.get('/v1/open', (_req, res) => void res.json([]));
    return { ...made, get: (path: string, raw: string) => getFrom(app, raw, path) };
  }

  it('shows a decision alike in metrics, span and onDecision', async () => {
    const { get, decisions } = traced();
    const expired = token({ claims: { exp: NOW_MS / 1000 - 100 } });

    expect((await get('/v1/orders/1', expired)).status).toBe(401);

    const [span] = spans.getFinishedSpans();
    expect(span?.attributes).toEqual({
      'tillgate.outcome': 'refused',
      'tillgate.reason': 'expired',
      'tillgate.issuer': ISSUER,
      'tillgate.token.cache': 'miss',
    });
    expect(decisions).toEqual([expect.objectContaining({ outcome: 'refused', reason: 'expired', status: 401 })]);
    // Each reason is there from the start: an alert does not see the increase from nothing to the first refusal.
    const refusals = Object.entries(REASONS).map(([reason, { status: code }]) => [
      {
        'tillgate.outcome': code === 503 ? 'unavailable' : 'refused',
        'tillgate.reason': reason,
        'http.response.status_code': code,
        'http.route': 'unmatched',
      },
      reason === 'expired' ? 1 : 0,
    ]);
    const counted = await collected('tillgate.decisions');
    expect(counted).toHaveLength(refusals.length);
    expect(counted).toEqual(expect.arrayContaining(refusals));
    const duration = { 'tillgate.outcome': 'refused', 'tillgate.token.cache': 'miss' };
    expect(await collected('tillgate.authentication.duration.seconds')).toEqual([[duration, 1]]);
  });

  it('counts what guards refuse, by the declared route', async () => {
    const { get } = traced();
    const [reads, others] = [token({ claims: { scope: 'orders:read' } }), token({ claims: { scope: 'items:read' } })];

    expect((await get('/v1/orders/1', reads)).status).toBe(200);
    expect((await get('/v1/orders/2', others)).status).toBe(403);

    const refused = {
      ...{ 'tillgate.outcome': 'refused', 'tillgate.reason': 'insufficient_scope' },
      ...{ 'http.response.status_code': 403, 'http.route': '/v1/orders/:id' },
    };
    expect(await collected('tillgate.decisions')).toContainEqual([refused, 1]);
    const [first, second] = spans.getFinishedSpans().map(({ attributes }) => attributes);
    expect(first).toMatchObject({ 'tillgate.outcome': 'authenticated' });
    expect(first).not.toHaveProperty('error.type');
    expect(second).toMatchObject({ 'tillgate.outcome': 'refused', 'tillgate.scopes.required': ['orders:read'] });
  });

  it('makes no label of a path that a caller has thought of: 2,000 of them hide no series', async () => {
    const { gate } = traced();
    const orders = express.Router().get('/orders', gate, requireScope('orders:read'), (_req, res) => void res.json([]));
    const app = express().use('/:store', orders);
    const reads = token({ claims: { scope: 'orders:read' } });
    const narrow = token({ claims: { scope: 'items:read' } });
    const routes = async (): Promise<readonly unknown[]> =>
      (await collected('tillgate.decisions')).map(
        ([attributes]) => (attributes as Readonly<Record<string, unknown>>)['http.route'],
      );
    for (let number = 0; number < 2_000; number++) await pass(app, undefined, `/${number}/orders`);
    await pass(app, `Bearer ${reads}`, `/${reads}/orders`);
    const before = await routes();
    expect(before).not.toContain('/7/orders');
    expect(JSON.stringify(before)).not.toContain('eyJ');

    await pass(app, `Bearer ${narrow}`, '/berlin/orders');
    expect(await routes()).toContain('/berlin/orders');
    await pass(app, undefined, '/berlin/orders');
    const missing = { 'tillgate.reason': 'missing_token', 'http.route': '/berlin/orders' };
    expect(await collected('tillgate.decisions')).toContainEqual([expect.objectContaining(missing), 1]);
  });

  it('counts a route by its own path where one client thinks of prefixes: later routes keep their names', async () => {
    const { gate } = traced();
    const orders = express.Router().get('/till-orders', requireScope('orders:read'), (_req, res) => void res.json([]));
    const app = express().use(gate).use('/shops/:shop', orders);
    app.get('/later', requireScope('orders:read'), (_req, res) => void res.json([]));
    const narrow = `Bearer ${token({ claims: { scope: 'items:read' } })}`;
    for (let shop = 0; shop < 400; shop++) await pass(app, narrow, `/shops/${shop}/till-orders`);
    await pass(app, narrow, '/later');
    const refused = (await collected('tillgate.decisions')).flatMap(([attributes, count]) => {
      const { 'http.route': route, 'tillgate.reason': reason } = attributes as Readonly<Record<string, string>>;
      const isOurs = reason === 'insufficient_scope' && /till-orders|later/.test(String(route));
      return isOurs ? [[route, count]] : [];
    });
    expect(refused).toEqual([
      ...Array.from({ length: 40 }, (_, shop) => [`/shops/${shop}/till-orders`, 1]),
      ...[
        ['*/till-orders', 360],
        ['/later', 1],
      ],
    ]);
  });

  it('has the age, the silence and the lateness of generations while the gate is open', async () => {
    let nowMs = NOW_MS;
    const source = memoryGenerations({ clock: () => nowMs });
    const { gate } = traced({ generationSource: source, clock: () => nowMs });
    await gate.ready();
    const issuer = { 'tillgate.issuer': ISSUER };
    await source.append([['pos-17', NOW_MS - 2_000]]);
    await eventually(() => spans.getFinishedSpans().length === 2);
    expect(spans.getFinishedSpans().map(({ name }) => name)).toEqual(Array(2).fill('tillgate.generations.read'));
    expect(await collected('tillgate.generations.propagation.seconds')).toEqual([[issuer, 1]]);
    nowMs += 3_000;
    expect(await collected('tillgate.generations.staleness.seconds')).toEqual([[issuer, 3]]);
    expect(await collected('tillgate.generations.floors')).toEqual([[issuer, 1]]);
    await gate.close();
    nowMs += 3_000;
    // The SDK repeats the last value; an age that went on growing would raise an alert.
    expect(await collected('tillgate.generations.staleness.seconds')).toEqual([[issuer, 3]]);
  });

  it('counts the clients that still send superseded tokens, and does not name them', async () => {
    const source = memoryGenerations({ clock: () => NOW_MS });
    const { gate, get } = traced({ generationSource: source });
    await source.append([['pos-17', NOW_MS - 2_000]]);
    await gate.ready();
    const issuer = { 'tillgate.issuer': ISSUER };
    expect(await collected('tillgate.generations.superseded.clients')).toEqual([[issuer, 0]]);
    for (let i = 0; i < 2; i++) expect((await get('/v1/orders/1', token())).status).toBe(401);
    expect(await collected('tillgate.generations.superseded.clients')).toEqual([[issuer, 1]]);
  });

  it('has the age of the keys of each issuer, and a span for each fetch of keys', async () => {
    const scene = await remoteGate([testKey()]);
    opened.push({ close: () => scene.stop() });
    await scene.gate.ready();
    const issuer = { 'tillgate.issuer': scene.server.origin };

    expect(await collected('tillgate.keys.age.seconds')).toEqual([[issuer, 0]]);
    expect(await collected('tillgate.keys.fetch.duration.seconds')).toEqual([[issuer, 1]]);
    expect(spans.getFinishedSpans().map(({ name, attributes }) => [name, attributes])).toEqual([
      ['tillgate.keys.fetch', issuer],
    ]);
  });

  it('names why a fetch has failed, in one word', async () => {
    const scene = await remoteGate([testKey()], { fetch: () => Promise.reject(new TypeError('secret')) });
    opened.push({ close: () => scene.stop() });
    await scene.get(scene.token());

    const [fetched] = spans.getFinishedSpans();
    expect(fetched?.attributes).toMatchObject({ 'error.type': 'network' });
    expect(JSON.stringify(fetched?.status)).not.toContain('secret');
  });

  it('shows no token, claim or client id', async () => {
    const { get } = traced();
    const raw = token({ claims: { jti: 'jti-of-this-token', store: 'berlin-1' } });
    await get('/v1/orders/1', raw);

    const { resourceMetrics } = await reader.collect();
    const points = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    const traces = spans.getFinishedSpans().map(({ attributes, events }) => [attributes, events]);
    const shown = JSON.stringify([points, traces]);
    expect(shown).toContain('authenticated');
    expect(shown).not.toMatch(/jti-of-this-token|berlin-1|pos-17/);
    expect(shown).not.toContain(raw.slice(-40));
  });

  it('counts DPoP proofs by their result, and no request without one', async () => {
    const scene = dpopApp();
    expect((await scene.send()).status).toBe(200);
    expect((await scene.send({ proof: proof({ method: 'POST' }) })).status).toBe(401);
    expect((await scene.send({ proof: null })).status).toBe(401);
    expect((await scene.send({ token: boundToken(callerKey(), { exp: NOW_MS / 1000 - 100 }) })).status).toBe(401);

    expect(await collected('tillgate.dpop.proofs')).toEqual([
      [{ 'tillgate.result': 'accepted' }, 1],
      [{ 'tillgate.result': 'invalid_dpop_proof' }, 1],
    ]);
    await scene.gate.close();
  });

  it('measures introspection: calls, why one failed, and the tokens that wait', async () => {
    const scene = introspectingGate();
    expect((await scene.get('good')).status).toBe(200);
    scene.endpoint.down = new Response('', { status: 500 });
    expect((await scene.get('other')).status).toBe(503);
    // A failure is followed by a call of the gate's own, to see whether the endpoint is down.
    await eventually(() => spans.getFinishedSpans().length === 3);
    const issuer = { 'tillgate.issuer': ISSUER };
    expect(await collected('tillgate.introspection.duration.seconds')).toEqual([
      [issuer, 1],
      [{ ...issuer, 'error.type': 'status' }, 2],
    ]);
    const failed = ['tillgate.introspection', { ...issuer, 'error.type': 'status' }];
    const shown = spans.getFinishedSpans().map(({ name, attributes }) => [name, attributes]);
    expect(shown).toEqual([['tillgate.introspection', issuer], failed, failed]);
    await scene.gate.close();

    const slow = introspectingGate();
    slow.endpoint.hold();
    const waiting = ['a', 'b'].map((one) => slow.get(one).then(({ status }) => status));
    await eventually(() => slow.endpoint.sent.length === 2);
    expect(await collected('tillgate.introspection.waiting')).toEqual([[issuer, 2]]);
    slow.endpoint.release();
    expect(await Promise.all(waiting)).toEqual([401, 401]);
    expect(await collected('tillgate.introspection.waiting')).toEqual([[issuer, 0]]);
    await slow.gate.close();
  });

  it('adds up what several gates decide', async () => {
    const scenes = [traced(), traced()];
    const raw = token({ claims: { scope: 'orders:read' } });
    const sum = async (name: string) => (await collected(name)).reduce((total, [, value]) => total + Number(value), 0);
    const names = ['tillgate.decisions', 'tillgate.authentication.duration.seconds'];
    const before = await Promise.all(names.map(sum));

    for (let times = 0; times < 5; times++) for (const { get } of scenes) await get('/v1/orders/1', raw);
    const after = await Promise.all(names.map(sum));
    expect(after.map((total, index) => total - (before[index] ?? 0))).toEqual([10, 10]);
  });

  it('has the attributes of the table and no others', async () => {
    const { resourceMetrics } = await reader.collect();
    const points = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    const names = points.map(({ descriptor }) => descriptor.name);
    const known = new Map<string, readonly string[]>(METRIC_ROWS.map(({ name, attributes }) => [name, attributes]));
    expect(names.filter((name) => !known.has(name))).toEqual([]);
    const strange = points.flatMap(({ descriptor, dataPoints }) => {
      const used = dataPoints.flatMap(({ attributes }) => Object.keys(attributes));
      return used.filter((one) => !known.get(descriptor.name)?.includes(one));
    });
    expect(strange).toEqual([]);
  });
});

it('makes its instruments at the provider that is registered, also after the first requests', async () => {
  const end = observe();
  const { gate } = gateApp();
  const app = express().use(gate);
  app.get('/late', requireScope('orders:read'), (_req, res) => void res.json([]));
  const get = () => getFrom(app, token(), '/late').expect(200);
  await get();
  const reader = new Reader();
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  await get();

  const { resourceMetrics } = await reader.collect();
  const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  const points = all.find(({ descriptor }) => descriptor.name === 'tillgate.decisions')?.dataPoints ?? [];
  const authenticated = points.filter(({ attributes }) => attributes['tillgate.outcome'] === 'authenticated');
  expect(authenticated.map(({ value }) => value)).toEqual([1]);
  end();
  metrics.disable();
  await gate.close();
});
