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
    [decisionChannel, (message: unknown) => observer.decided(message as Decision)],
    [keysChannel, (message: unknown) => observer.fetchedKeys(message as Activity<KeyStatus>)],
    [generationsChannel, (message: unknown) => observer.readGenerations(message as Activity<GenerationStatus>)],
    [introspectionChannel, (message: unknown) => observer.introspected(message as Activity<IntrospectionStatus>)],
  ].map(([channel, take]) => {
    // Node reports what a subscriber throws as an uncaught exception.
    const subscriber = (message: unknown): void => {
      callUnwaited(
        () => (take as (message: unknown) => void)(message),
        (error) => peer.module.diag.error('tillgate', error),
      );
    };
    (channel as typeof decisionChannel).subscribe(subscriber);
    return () => (channel as typeof decisionChannel).unsubscribe(subscriber);
  });
  observer.instruments();
  return () => {
    for (const end of subscribers) end();
    observer.close();
  };
}

type Attributes = OpenTelemetry.Attributes;
/** Reads one value of the state of each open gate. */
type Gauge<Status> = readonly [name: MetricName, read: (status: Status) => number | undefined];

const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1_000);
const KEY_GAUGES: readonly Gauge<KeyStatus>[] = [['tillgate.keys.age.seconds', ({ ageMs }) => seconds(ageMs)]];
const GENERATION_GAUGES: readonly Gauge<GenerationStatus>[] = [
  ['tillgate.generations.staleness.seconds', ({ ageMs }) => seconds(ageMs)],
  ['tillgate.generations.silence.seconds', ({ silentMs }) => seconds(silentMs)],
  ['tillgate.generations.floors', ({ floors }) => floors],
  ['tillgate.generations.superseded.clients', ({ supersededClients = 0 }) => supersededClients],
  ['tillgate.generations.unnoticed', ({ changes }) => Number(changes === 'not at all')],
];
const INTROSPECTION_GAUGES: readonly Gauge<IntrospectionStatus>[] = [
  ['tillgate.introspection.waiting', ({ waiting }) => waiting],
];

class Observer {
  readonly #api: Api;
  readonly #routes = new RouteLabels();
  readonly #keys = new OpenGates<KeyStatus>();
  readonly #generations = new OpenGates<GenerationStatus>();
  readonly #introspection = new OpenGates<IntrospectionStatus>();
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
    this.#keys.show(meter, KEY_GAUGES);
    this.#generations.show(meter, GENERATION_GAUGES);
    this.#introspection.show(meter, INTROSPECTION_GAUGES);
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

  fetchedKeys(activity: Activity<KeyStatus>): void {
    this.#keys.take(activity);
    this.#ended(activity, 'tillgate.keys.fetch', 'tillgate.keys.fetch.duration.seconds');
  }

  readGenerations(activity: Activity<GenerationStatus>): void {
    this.#generations.take(activity);
    this.#ended(activity, 'tillgate.generations.read');
    const attributes = { 'tillgate.issuer': activity.issuer };
    for (const ms of activity.lateMs ?? [])
      this.instruments().record('tillgate.generations.propagation.seconds', ms, attributes);
  }

  introspected(activity: Activity<IntrospectionStatus>): void {
    this.#introspection.take(activity);
    this.#ended(activity, 'tillgate.introspection', 'tillgate.introspection.duration.seconds');
  }

  #ended({ issuer, event, durationMs, error }: Activity<unknown>, span: string, histogram?: MetricName): void {
    const instruments = this.instruments();
    if (durationMs === undefined) return;
    const attributes: Attributes = { 'tillgate.issuer': issuer };
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
    for (const gates of [this.#keys, this.#generations, this.#introspection]) gates.clear();
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
class OpenGates<Status> {
  readonly #issuers = new Map<() => Status, string>();

  take({ event, issuer, status }: Activity<Status>): void {
    if (event === 'closed') this.#issuers.delete(status);
    else this.#issuers.set(status, issuer);
  }

  /** Of several gates with the same issuer the largest value counts. */
  show(meter: OpenTelemetry.Meter, gauges: readonly Gauge<Status>[]): void {
    for (const [name, read] of gauges) {
      const { unit, meaning: description } = METRICS[name];
      meter.createObservableGauge(name, { unit, description }).addCallback((result) => {
        const largest = new Map<string, number>();
        for (const [status, issuer] of this.#issuers) {
          const value = read(status());
          if (value !== undefined) largest.set(issuer, Math.max(value, largest.get(issuer) ?? value));
        }
        for (const [issuer, value] of largest) result.observe(value, { 'tillgate.issuer': issuer });
      });
    }
  }

  clear(): void {
    this.#issuers.clear();
  }
}

/** A failure in one word, never its message. */
function errorType(error: unknown): 'timeout' | 'status' | 'content' | 'network' {
  const { name, message, status } = Object(error) as Readonly<Record<string, unknown>>;
  if (typeof message === 'string' && /did not respond (in time|within)/.test(message)) return 'timeout';
  if (typeof status === 'number') return status === 200 ? 'content' : 'status';
  return name === 'FetchError' ? 'network' : 'content';
}
