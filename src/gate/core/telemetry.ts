import type * as OpenTelemetry from '@opentelemetry/api';
import { BUCKETS, METRICS, METRIC_ROWS } from './metrics';
import type { MetricName, MetricOf, MetricRow } from './metrics';

/*
 * Measurements of all gates of the process: counters are numbers here that exporters read when they collect, and durations
 * wait here to be recorded many at a time, so that a request only increments. Nothing is measured without a collector.
 */

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
/** Values of attributes are bounded, but an app may mount its routes under paths with parameters. */
const MAX_SERIES = 2_000;

/** Whether anybody collects metrics or traces: a request is measured only then. */
export function isObserved(): boolean {
  if (recorders.size > 0) return true;
  const sdk = registered();
  return sdk?.metrics !== undefined || sdk?.trace !== undefined;
}

/** Where all copies of `@opentelemetry/api` 1.x keep what an SDK has registered. */
const REGISTRY: unique symbol = Symbol.for('opentelemetry.js.api.1');

/** What an SDK has registered: read from where the package keeps it, because asking the package takes 15 calls. */
function registered(): { readonly metrics?: unknown; readonly trace?: unknown } | undefined {
  return api && (globalThis as { [REGISTRY]?: { readonly metrics?: unknown; readonly trace?: unknown } })[REGISTRY];
}

type AttributeValue = string | number | undefined;

/** The value of one combination of attributes. */
interface Series {
  readonly attributes: Reading['attributes'];
  /** Of a counter: how often it was counted; of a histogram: how many durations are pending. */
  value: number;
  /** Durations in seconds that the histograms do not have yet. */
  readonly pending: Float64Array;
}

/** Finds a series value by value: a key of all values would be built and hashed for each request. */
class Branch {
  series?: Series;
  readonly next = new Map<AttributeValue, Branch>();
}

/** What is measured of each metric. */
const tables = new Map(METRIC_ROWS.map(({ name }) => [name, { all: [] as Series[], root: new Branch() }]));

/** An SDK builds and hashes a text of the attributes of each duration: one after the other, in half of the time. */
const BATCH = 128;

/** Counts one event; the values belong to the attributes of the metric's row, in their order. */
export function count(name: MetricOf<'counter'>, ...values: readonly AttributeValue[]): void {
  const series = isObserved() ? seriesOf(name, values) : undefined;
  if (series) series.value++;
}

/** Records one duration; the values as in `count()`. */
export function record(name: MetricOf<'histogram'>, seconds: number, ...values: readonly (string | undefined)[]): void {
  const series = isObserved() ? seriesOf(name, values) : undefined;
  if (!series) return;
  // The instruments of a provider are made now, because their callbacks flush.
  if (api) histograms(api);
  series.pending[series.value++] = seconds;
  if (series.value === BATCH) flush(name, series);
}

/** Hands the durations of one series to the histograms. */
function flush(name: MetricOf<'histogram'>, series: Series): void {
  const { attributes, pending, value: size } = series;
  series.value = 0;
  const histogram = api && histograms(api)?.get(name);
  for (const seconds of pending.subarray(0, size)) {
    for (const recorder of recorders) recorder(name, seconds, attributes);
    histogram?.record(seconds, attributes);
  }
}

/** Hands over the durations that are pending, before an exporter collects. */
export function flushDurations(): void {
  for (const { name, kind } of METRIC_ROWS) {
    if (kind !== 'histogram') continue;
    for (const series of tables.get(name)?.all ?? []) flush(name as MetricOf<'histogram'>, series);
  }
}

function seriesOf(name: MetricName, values: readonly AttributeValue[]): Series | undefined {
  let branch = tables.get(name)?.root;
  for (const value of values) branch = branch?.next.get(value);
  return branch?.series ?? addSeries(name, values);
}

function addSeries(name: MetricName, values: readonly AttributeValue[]): Series | undefined {
  const table = tables.get(name);
  if (!table || table.all.length >= MAX_SERIES) return undefined;
  let branch = table.root;
  for (const value of values) {
    const next = branch.next.get(value) ?? new Branch();
    branch.next.set(value, next);
    branch = next;
  }
  const pending = new Float64Array(METRICS[name].kind === 'histogram' ? BATCH : 0);
  branch.series = { attributes: attributesOf(name, values), value: 0, pending };
  table.all.push(branch.series);
  return branch.series;
}

function attributesOf(name: MetricName, values: readonly AttributeValue[]): Reading['attributes'] {
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

/** Adds to the span of the request, which an instrumentation of the server has made, if somebody collects it. */
export function annotate(describe: (add: Annotation) => void): void {
  const span = activeSpan();
  if (!span?.isRecording()) return;
  describe((name, value) => {
    if (value !== undefined) span.setAttribute(name, value as OpenTelemetry.AttributeValue);
  });
}

/** Adds one attribute; `undefined`: it is absent. */
type Annotation = (name: string, value: AttributeValue | readonly string[]) => void;

/** The ids under which a log line and its trace find each other. */
export function traceIds(): { readonly trace_id: string; readonly span_id: string } | undefined {
  const context = activeSpan()?.spanContext();
  return context && { trace_id: context.traceId, span_id: context.spanId };
}

function activeSpan(): OpenTelemetry.Span | undefined {
  return registered()?.trace ? api?.trace.getActiveSpan() : undefined;
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
  const { kind, attributes, zeros = [] }: MetricRow = METRICS[name];
  if (kind === 'counter') {
    for (const values of zeros) seriesOf(name, [...values, ...Array<undefined>(attributes.length - values.length)]);
    return tables.get(name)?.all ?? [];
  }
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

let provider: unknown;
let instruments: ReadonlyMap<MetricName, OpenTelemetry.Histogram> | undefined;

/** The histograms of the provider that is registered now, which may come after the gate; `undefined` where there is none. */
function histograms({ metrics, createNoopMeter }: Api): typeof instruments {
  const current = registered()?.metrics;
  if (current === provider) return instruments;
  provider = current;
  const meter = metrics.getMeter('tillgate');
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
      flushDurations();
      for (const { value, attributes } of readings(name)) result.observe(value, attributes);
    });
  }
  return made;
}
