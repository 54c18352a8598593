import type * as OpenTelemetry from '@opentelemetry/api';
import { BUCKETS, METRICS, METRIC_ROWS } from './metrics';
import type { MetricName, MetricOf } from './metrics';

/*
 * Measurements of all gates of the process: counters are numbers here that exporters read when they collect, so that a
 * request only increments. Nothing is measured while nobody collects.
 */

/** Attributes by name; `undefined`: absent. */
export type Attributes = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** One value of a counter or gauge. */
export interface Reading {
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** Gets the values of histograms as they are measured. */
export type Recorder = (name: MetricOf<'histogram'>, seconds: number, attributes: Reading['attributes']) => void;

/** Reads the gauges of one gate. */
export type GaugeReader = () => Iterable<{ readonly name: MetricOf<'gauge'> } & Reading>;

type Api = typeof OpenTelemetry;

const recorders = new Set<Recorder>();
/** Weak, so that a gate that was never closed can be collected. */
const gauges = new Set<WeakRef<GaugeReader>>();
type Series = Map<string, { readonly attributes: Reading['attributes']; value: number }>;
const counts = new Map<string, Series>();
const measured = new Map<string, Map<string, Reading['attributes']>>();
/** Values of attributes are bounded, but an app may mount its routes under paths with parameters. */
const MAX_SERIES = 2_000;

/** Whether anybody collects metrics or traces: a request is measured only then. */
export function isObserved(): boolean {
  return recorders.size > 0 || isRegistered();
}

/** Where all copies of `@opentelemetry/api` 1.x keep what an SDK has registered. */
const REGISTRY: unique symbol = Symbol.for('opentelemetry.js.api.1');

/** Whether an SDK is registered: read from where the package keeps it, because asking the package takes 15 calls. */
function isRegistered(): boolean {
  if (api === undefined) return false;
  const registry = (globalThis as { [REGISTRY]?: { readonly metrics?: unknown; readonly trace?: unknown } })[REGISTRY];
  return registry?.metrics !== undefined || registry?.trace !== undefined;
}

/** Counts one event; the values belong to the attributes of the metric's row, in their order. */
export function count(name: MetricOf<'counter'>, ...values: readonly (string | number | undefined)[]): void {
  if (!isObserved()) return;
  const key = values.join('\n');
  const series = counts.get(name) ?? (new Map() as Series);
  const known = series.get(key);
  if (known) known.value++;
  else if (series.size < MAX_SERIES) {
    counts.set(name, series.set(key, { attributes: attributesOf(name, values), value: 1 }));
  }
}

/** Records one duration; the values as in `count()`. */
export function record(name: MetricOf<'histogram'>, seconds: number, ...values: readonly (string | undefined)[]): void {
  if (!isObserved()) return;
  const known = measured.get(name) ?? new Map<string, Reading['attributes']>();
  const key = `${values[0]} ${values[1]}`;
  const attributes = known.get(key) ?? attributesOf(name, values);
  measured.set(name, known.set(key, attributes));
  for (const recorder of recorders) recorder(name, seconds, attributes);
  if (api) histograms(api)?.get(name)?.record(seconds, attributes);
}

function attributesOf(name: MetricName, values: readonly (string | number | undefined)[]): Reading['attributes'] {
  const pairs = METRICS[name].attributes.map((attribute, index) => [attribute, values[index]] as const);
  return Object.fromEntries(pairs.filter((pair): pair is [never, string | number] => pair[1] !== undefined));
}

/** Does work outside of requests in a span of its own, and records how long it took and why it failed. */
export async function measure<Value>(
  name: MetricOf<'histogram'>,
  issuer: string,
  work: () => Promise<Value>,
): Promise<Value> {
  openTelemetry();
  const startedMs = performance.now();
  const finished = (error?: unknown): string | undefined => {
    const type = error === undefined ? undefined : errorType(error);
    record(name, (performance.now() - startedMs) / 1000, issuer, type);
    return type;
  };
  async function run(span?: OpenTelemetry.Span): Promise<Value> {
    try {
      const value = await work();
      finished();
      return value;
    } catch (error) {
      const type = finished(error);
      if (type !== undefined) span?.setAttribute('error.type', type).setStatus({ code: ERROR });
      throw error;
    } finally {
      span?.end();
    }
  }
  if (!api) return run();
  const options = { kind: CLIENT, attributes: { 'tillgate.issuer': issuer } };
  return api.trace.getTracer('tillgate').startActiveSpan(name.replace(/\.duration$/, ''), options, run);
}

/** `SpanKind.CLIENT` and `SpanStatusCode.ERROR`: enums of a package that may be absent. */
const CLIENT = 2;
const ERROR = 2;

/** A failed exchange in one word, never its message. */
function errorType(error: unknown): 'timeout' | 'status' | 'content' | 'network' {
  const { name, message, status } = Object(error) as Readonly<Record<string, unknown>>;
  if (typeof message === 'string' && /did not respond (in time|within)/.test(message)) return 'timeout';
  if (typeof status === 'number') return status === 200 ? 'content' : 'status';
  return name === 'FetchError' ? 'network' : 'content';
}

/** Adds what was decided to the span of the request, which an instrumentation of the server has made. */
export function annotate(attributes: Attributes): void {
  const span = activeSpan();
  if (!span?.isRecording()) return;
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) span.setAttribute(name, value as OpenTelemetry.AttributeValue);
  }
}

/** The ids under which a log line and its trace find each other. */
export function traceIds(): { readonly trace_id: string; readonly span_id: string } | undefined {
  const context = activeSpan()?.spanContext();
  return context && { trace_id: context.traceId, span_id: context.spanId };
}

function activeSpan(): OpenTelemetry.Span | undefined {
  return isRegistered() ? api?.trace.getActiveSpan() : undefined;
}

/** Adds an exporter of histograms; it reads the rest by `readings()`. Returns its end. */
export function addRecorder(recorder: Recorder): () => void {
  recorders.add(recorder);
  return () => void recorders.delete(recorder);
}

/** Adds the gauges of a gate that opens, which keeps `reader`. Returns their end. */
export function addGauges(reader: GaugeReader): () => void {
  openTelemetry();
  const reference = new WeakRef(reader);
  gauges.add(reference);
  return () => void gauges.delete(reference);
}

/** The values of a counter or gauge now. Of several gates with the same issuer the largest value counts. */
export function readings(name: MetricName): readonly Reading[] {
  if (METRICS[name].kind === 'counter') return [...(counts.get(name)?.values() ?? [])];
  const largest = new Map<string, Reading>();
  for (const reference of gauges) {
    const read = reference.deref();
    if (!read) gauges.delete(reference);
    for (const reading of read?.() ?? []) {
      const issuer = String(reading.attributes['tillgate.issuer']);
      const known = largest.get(issuer)?.value ?? -Infinity;
      if (reading.name === name && reading.value > known) largest.set(issuer, reading);
    }
  }
  return [...largest.values()];
}

let api: Api | undefined;
let isSought = false;

/** Looks for the package once, when the first gate opens. */
function openTelemetry(): void {
  if (isSought) return;
  isSought = true;
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import would make it a required peer
    api = require('@opentelemetry/api') as Api;
  } catch {
    // Absent, or unusable: a gate works without it.
  }
}

let provider: OpenTelemetry.MeterProvider | undefined;
let instruments: ReadonlyMap<MetricName, OpenTelemetry.Histogram> | undefined;

/** The histograms of the provider that is registered now, which may come after the gate; `undefined` where there is none. */
function histograms({ metrics, createNoopMeter }: Api): typeof instruments {
  const registered = metrics.getMeterProvider();
  if (registered === provider) return instruments;
  provider = registered;
  const meter = registered.getMeter('tillgate');
  return (instruments = meter === createNoopMeter() ? undefined : instrumentsOf(meter));
}

function instrumentsOf(meter: OpenTelemetry.Meter): NonNullable<typeof instruments> {
  const made = new Map<MetricName, OpenTelemetry.Histogram>();
  for (const { name, kind, unit, meaning: description } of METRIC_ROWS) {
    if (kind === 'histogram') {
      const advice = { explicitBucketBoundaries: BUCKETS };
      made.set(name, meter.createHistogram(name, { unit, description, advice }));
      continue;
    }
    const make = kind === 'counter' ? 'createObservableCounter' : 'createObservableGauge';
    meter[make](name, { unit, description }).addCallback((result) => {
      for (const { value, attributes } of readings(name)) result.observe(value, attributes);
    });
  }
  return made;
}
