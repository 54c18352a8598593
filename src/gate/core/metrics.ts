import { REASONS } from './reasons';

/** What is known of one metric: instruments of OpenTelemetry, `/metrics` and docs/operations.md are made from this row. */
export interface MetricRow {
  readonly kind: 'counter' | 'histogram' | 'gauge';
  /** Unit as UCUM has it: `s`, or what is counted in braces. */
  readonly unit: string;
  /** Attributes with a bounded number of values: no client id, no path of a caller. */
  readonly attributes: readonly string[];
  readonly meaning: string;
  /** When an operator should look. */
  readonly worry: string;
  /**
   * Series that a counter shows from the start, with 0, by the values of their first attributes: Prometheus sees no increase
   * where a series appears with its first event.
   */
  readonly zeros?: readonly (readonly (string | number)[])[];
}

/** The metrics of a gate, by their names in OpenTelemetry. */
export const METRICS = {
  'tillgate.authentication.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: ['tillgate.outcome', 'tillgate.token.cache'],
    meaning: 'Time from the Authorization header to the decision of the gate.',
    worry: 'the 99th percentile of `miss` is above 50 ms',
  },
  'tillgate.decisions': {
    kind: 'counter',
    unit: '{decision}',
    attributes: [...(['tillgate.outcome', 'tillgate.reason', 'http.response.status_code', 'http.route'] as const)],
    meaning: 'Decisions of the gate, and refusals by guards after it; `unavailable` is a refusal with 503.',
    worry: 'any `unavailable`; more than 5% `wrong_audience`, `wrong_issuer` or `wrong_type`',
    zeros: Object.entries(REASONS).map(([reason, { status }]) => [
      status === 503 ? 'unavailable' : 'refused',
      reason,
      status,
    ]),
  },
  'tillgate.authorization.attempts': {
    kind: 'counter',
    unit: '{attempt}',
    attributes: ['tillgate.guard', 'tillgate.result', 'http.route'],
    meaning: 'Requests that reached a guard, `allowed` or `refused`.',
    worry: '`refused` rises on one route',
  },
  'tillgate.responses.unguarded': {
    kind: 'counter',
    unit: '{response}',
    attributes: ['http.route'],
    meaning: 'Responses 2xx that no guard allowed, replaced or not.',
    worry: 'above 0: a route lacks its guard',
  },
  'tillgate.keys.age': {
    kind: 'gauge',
    unit: 's',
    attributes: ['tillgate.issuer'],
    meaning: 'Time since the key set was fetched.',
    worry: 'twice `keysMaxAgeMs`',
  },
  'tillgate.keys.count': {
    kind: 'gauge',
    unit: '{key}',
    attributes: ['tillgate.issuer'],
    meaning: 'Keys that can verify tokens.',
    worry: '0',
  },
  'tillgate.keys.fetch.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: ['tillgate.issuer', 'error.type'],
    meaning: 'Fetches of the key set, discovery included.',
    worry: 'every fetch has an `error.type`',
  },
  'tillgate.keys.unknown': {
    kind: 'counter',
    unit: '{token}',
    attributes: [],
    meaning: 'Tokens refused because their key is not in the key set.',
    worry: 'rises for longer than a rotation takes',
    zeros: [[]],
  },
  'tillgate.generations.staleness': {
    kind: 'gauge',
    unit: 's',
    attributes: ['tillgate.issuer'],
    meaning: 'Time since the log of generations was read to its end.',
    worry: 'half of `maxStalenessMs`',
  },
  'tillgate.generations.silence': {
    kind: 'gauge',
    unit: 's',
    attributes: ['tillgate.issuer'],
    meaning: 'Time since the publisher of the log of generations was heard from.',
    worry: 'above 60 s',
  },
  'tillgate.generations.floors': {
    kind: 'gauge',
    unit: '{client}',
    attributes: ['tillgate.issuer'],
    meaning: 'Clients whose credential has changed within the lifetime of a token.',
    worry: 'it jumps',
  },
  'tillgate.generations.propagation': {
    kind: 'histogram',
    unit: 's',
    attributes: ['tillgate.issuer'],
    meaning:
      'Time from a change of a credential to its enforcement here; a log that is written anew counts its changes again.',
    worry: 'the 99th percentile is above 1 s',
  },
  'tillgate.generations.read.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: ['tillgate.issuer', 'error.type'],
    meaning: 'Reads of the log; one that finds nothing waits for a change, up to `pollMs`.',
    worry: 'every read has an `error.type`',
  },
  'tillgate.introspection.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: ['tillgate.issuer', 'error.type'],
    meaning: 'Calls of the introspection endpoint.',
    worry: 'the 99th percentile is above 1 s, or calls have an `error.type`',
  },
  'tillgate.introspection.waiting': {
    kind: 'gauge',
    unit: '{token}',
    attributes: ['tillgate.issuer'],
    meaning: 'Opaque tokens whose introspection has begun or waits for its turn.',
    worry: 'above 16: as many calls run at a time',
  },
  'tillgate.dpop.proofs': {
    kind: 'counter',
    unit: '{proof}',
    attributes: ['tillgate.result'],
    meaning: 'DPoP proofs, `accepted` or by the reason of their refusal.',
    worry: '`invalid_dpop_proof` rises',
  },
} as const satisfies Readonly<Record<string, MetricRow>>;

/** The name of a metric in OpenTelemetry. */
export type MetricName = keyof typeof METRICS;
/** A metric of one kind. */
export type MetricOf<Kind extends MetricRow['kind']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never;
}[MetricName];

/** The rows with their names, and those that Prometheus has for them: as its exporters for OpenTelemetry translate. */
export const METRIC_ROWS = Object.entries<MetricRow>(METRICS).map(([name, row]) => {
  const suffix = `${row.unit === 's' ? '_seconds' : ''}${row.kind === 'counter' ? '_total' : ''}`;
  return { ...row, name: name as MetricName, prometheus: labelOf(name) + suffix, labels: row.attributes.map(labelOf) };
});

/** Upper bounds of all histograms, in seconds: 10 us to 1 s, and what waits. */
export const BUCKETS = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10];

/** The name of an attribute as a label of Prometheus. */
export function labelOf(attribute: string): string {
  return attribute.replaceAll('.', '_');
}
