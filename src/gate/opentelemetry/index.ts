import type { Channel } from 'node:diagnostics_channel';
import type * as OpenTelemetry from '@opentelemetry/api';
import { callUnwaited } from '../core/callbacks';
import { decisionChannel, generationsChannel, introspectionChannel, keysChannel } from '../core/activity-channels';
import type { Activity } from '../core/activity-channels';
import type { GenerationStatus, IntrospectionStatus, KeyStatus } from '../core/gate-status';
import { REASONS } from '../core/reasons';
import { RouteLabels } from '../core/route-labels';
import { loadPeer } from '../core/optional-peers';
import type { Decision } from '../verifier/options';
import { BUCKETS, METRICS, REFUSALS, refusalAttributes, UNMATCHED, type MetricName } from './metrics';

type Api = typeof OpenTelemetry;

/**
 * Hands to OpenTelemetry what all gates of the process do: metrics, attributes of the span of a request, and spans for
 * fetches of keys, reads of generations and introspection. Call it before `authenticate()`; the SDK may be registered later.
 * Any copy of this package observes the gates of any other.
 *
 * @returns a function that ends it
 * @throws Error when `@opentelemetry/api` 1.x is not installed
 *
 * @example
 * ```ts
 * import { metrics } from '@opentelemetry/api';
 * import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
 * import { MeterProvider } from '@opentelemetry/sdk-metrics';
 * import { observe } from 'tillgate/opentelemetry';
 *
 * const exporter = new PrometheusExporter({ host: '127.0.0.1', port: 9464 });
 * metrics.setGlobalMeterProvider(new MeterProvider({ readers: [exporter] }));
 * observe();
 * ```
 */
export function observe(): () => void {
  const peer = loadPeer<Api>('@opentelemetry/api', require);
  if (!peer.module) throw new Error(`tillgate/opentelemetry: ${peer.problem}; npm install @opentelemetry/api@1`);
  const observer = new Observer(peer.module);
  const subscribers = [
    [decisionChannel, (message: unknown) => observer.decided(message as Decision)] as const,
    ...ACTIVITIES.map((row) => [row[0], (message: unknown) => observer.acted(message as GateActivity, row)] as const),
  ].map(([channel, take]) => {
    // Node reports what a subscriber throws as an uncaught exception.
    const subscriber = (message: unknown): void => {
      callUnwaited(
        () => take(message),
        (error) => peer.module.diag.error('tillgate', error),
      );
    };
    channel.subscribe(subscriber);
    return () => channel.unsubscribe(subscriber);
  });
  observer.instruments();
  return () => {
    for (const end of subscribers) end();
    observer.close();
  };
}

type Attributes = OpenTelemetry.Attributes;
/** The state of a gate; which members it has depends on the channel. */
type Status = Partial<KeyStatus & GenerationStatus & IntrospectionStatus>;
type GateActivity = Activity<Status>;
/** How the activities of a channel are shown. */
type ActivityRow = readonly [channel: Channel, span: string, histogram?: MetricName];
/** Reads one value of the state of each open gate that the channel knows. */
type Gauge = readonly [name: MetricName, channel: Channel, read: (status: Status) => number | undefined];

const ACTIVITIES: readonly ActivityRow[] = [
  [keysChannel, 'tillgate.keys.fetch', 'tillgate.keys.fetch.duration.seconds'],
  [generationsChannel, 'tillgate.generations.read'],
  [introspectionChannel, 'tillgate.introspection', 'tillgate.introspection.duration.seconds'],
];

const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1_000);
const GAUGES: readonly Gauge[] = [
  ['tillgate.keys.age.seconds', keysChannel, ({ ageMs }) => seconds(ageMs)],
  ['tillgate.generations.staleness.seconds', generationsChannel, ({ ageMs }) => seconds(ageMs)],
  ['tillgate.generations.silence.seconds', generationsChannel, ({ silentMs }) => seconds(silentMs)],
  ['tillgate.generations.floors', generationsChannel, ({ floors }) => floors],
  ['tillgate.generations.superseded.clients', generationsChannel, ({ supersededClients = 0 }) => supersededClients],
  ['tillgate.generations.unnoticed', generationsChannel, ({ changes }) => Number(changes === 'not at all')],
  ['tillgate.introspection.waiting', introspectionChannel, ({ waiting }) => waiting],
];

class Observer {
  readonly #api: Api;
  readonly #routes = new RouteLabels();
  readonly #gates = new OpenGates();
  #provider: unknown;
  #instruments: Instruments | undefined;

  constructor(api: Api) {
    this.#api = api;
  }

  /** The instruments of the provider that is registered now: those that were made before it are never exported. */
  instruments(): Instruments {
    const provider = this.#api.metrics.getMeterProvider();
    if (this.#instruments && provider === this.#provider) return this.#instruments;
    this.#provider = provider;
    const meter = this.#api.metrics.getMeter('tillgate');
    this.#gates.show(meter);
    return (this.#instruments = new Instruments(meter));
  }

  decided(decision: Decision): void {
    const { reason, status, auth, durationMs, cache, request } = decision;
    const instruments = this.instruments();
    const route = this.#routeOf(decision);
    const attributes: Attributes =
      reason === undefined || status === undefined
        ? { 'tillgate.outcome': decision.outcome, 'http.route': route }
        : refusalAttributes(reason, status, route);
    const outcome = attributes['tillgate.outcome'];
    instruments.decisions.add(1, attributes);
    if (durationMs !== undefined) {
      instruments.record('tillgate.authentication.duration.seconds', durationMs, {
        'tillgate.outcome': outcome,
        'tillgate.token.cache': cache,
      });
    }
    // Whether the token is bound to a DPoP key (RFC 9449 section 6.1).
    const isBound = typeof (auth?.claims['cnf'] as { readonly jkt?: unknown } | undefined)?.jkt === 'string';
    const isAboutProof = reason === undefined ? isBound : REASONS[reason].about === 'proof';
    if (isAboutProof && request.headers['dpop'] !== undefined)
      instruments.proofs.add(1, { 'tillgate.result': reason ?? 'accepted' });
    this.#annotate(decision, outcome);
  }

  /** Only a good token makes a route a label. */
  #routeOf({ route, auth, request }: Decision): string {
    const own = (request as { readonly route?: { readonly path?: unknown } }).route?.path;
    return (route === undefined ? undefined : this.#routes.of(route, own, auth !== undefined)) ?? UNMATCHED;
  }

  /** Adds to the span of the request, which an instrumentation of the server has made. */
  #annotate({ reason, status, error, auth, cache, issuer }: Decision, outcome: Attributes[string]): void {
    const span = this.#api.trace.getActiveSpan();
    if (!span?.isRecording()) return;
    const attributes: Attributes = {
      'tillgate.outcome': outcome,
      'tillgate.reason': reason,
      'tillgate.issuer': issuer,
      'tillgate.generation': auth?.generation,
      'tillgate.token.cache': cache,
      'tillgate.scopes.required': error?.requiredScopes && [...error.requiredScopes],
      'error.type': status === 503 ? reason : undefined,
    };
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.setAttribute(name, value);
  }

  acted(activity: GateActivity, [channel, span, histogram]: ActivityRow): void {
    const { issuer, event, durationMs, error, lateMs = [] } = activity;
    this.#gates.take(channel, activity);
    const instruments = this.instruments();
    const attributes: Attributes = { 'tillgate.issuer': issuer };
    for (const ms of lateMs) instruments.record('tillgate.generations.propagation.seconds', ms, { ...attributes });
    if (durationMs === undefined) return;
    if (event === 'failed') attributes['error.type'] = errorType(error);
    if (histogram) instruments.record(histogram, durationMs, attributes);
    const { trace, SpanKind, SpanStatusCode } = this.#api;
    const endTime = Date.now();
    const options = { kind: SpanKind.CLIENT, attributes, startTime: endTime - durationMs };
    const ended = trace.getTracer('tillgate').startSpan(span, options);
    if (event === 'failed') ended.setStatus({ code: SpanStatusCode.ERROR });
    ended.end(endTime);
  }

  close(): void {
    this.#gates.clear();
  }
}

/** What counts and measures at one provider. */
class Instruments {
  readonly decisions: OpenTelemetry.Counter;
  readonly proofs: OpenTelemetry.Counter;
  readonly #histograms = new Map<MetricName, OpenTelemetry.Histogram>();

  constructor(meter: OpenTelemetry.Meter) {
    const about = (name: MetricName) => ({ unit: METRICS[name].unit, description: METRICS[name].meaning });
    this.decisions = meter.createCounter('tillgate.decisions', about('tillgate.decisions'));
    this.proofs = meter.createCounter('tillgate.dpop.proofs', about('tillgate.dpop.proofs'));
    const advice = { explicitBucketBoundaries: BUCKETS };
    for (const name of Object.keys(METRICS) as MetricName[]) {
      if (METRICS[name].kind !== 'histogram') continue;
      this.#histograms.set(name, meter.createHistogram(name, { ...about(name), advice }));
    }
    for (const attributes of REFUSALS) this.decisions.add(0, attributes);
  }

  record(name: MetricName, ms: number, attributes: Attributes): void {
    this.#histograms.get(name)?.record(ms / 1_000, attributes);
  }
}

/** The gates that are open, by the function that returns their state. */
class OpenGates {
  readonly #gates = new Map<() => Status, readonly [channel: Channel, issuer: string]>();

  take(channel: Channel, { event, issuer, status }: GateActivity): void {
    if (event === 'closed') this.#gates.delete(status);
    else this.#gates.set(status, [channel, issuer]);
  }

  /** Of several gates with the same issuer the largest value counts. */
  show(meter: OpenTelemetry.Meter): void {
    for (const [name, channel, read] of GAUGES) {
      const { unit, meaning: description } = METRICS[name];
      meter.createObservableGauge(name, { unit, description }).addCallback((result) => {
        const largest = new Map<string, number>();
        for (const [status, [from, issuer]] of this.#gates) {
          const value = from === channel ? read(status()) : undefined;
          if (value !== undefined) largest.set(issuer, Math.max(value, largest.get(issuer) ?? value));
        }
        for (const [issuer, value] of largest) result.observe(value, { 'tillgate.issuer': issuer });
      });
    }
  }

  clear(): void {
    this.#gates.clear();
  }
}

/** A failure in one word, never its message. */
function errorType(error: unknown): 'timeout' | 'status' | 'content' | 'network' {
  const { name, message, status } = Object(error) as Readonly<Record<string, unknown>>;
  if (typeof message === 'string' && /did not respond (in time|within)/.test(message)) return 'timeout';
  if (typeof status === 'number') return status === 200 ? 'content' : 'status';
  return name === 'FetchError' ? 'network' : 'content';
}
