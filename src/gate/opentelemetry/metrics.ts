import { REASONS, type Reason } from '../core/reasons';

/** What is known of one metric: the instruments and the table in docs/operations.md are made from this row. */
export interface MetricRow {
  readonly kind: 'counter' | 'histogram' | 'gauge';
  /** Unit as UCUM has it: `s`, or what is counted in braces. */
  readonly unit: string;
  /** Attributes with a bounded number of values: no client id, no path of a caller. */
  readonly attributes: readonly string[];
  readonly meaning: string;
  /** When an operator should look. */
  readonly worry: string;
}

const DURATION = { kind: 'histogram', unit: 's' } as const;
const GAUGE = { kind: 'gauge', attributes: ['tillgate.issuer'] } as const;
const AGE = { ...GAUGE, unit: 's' } as const;

/**
 * The metrics, by their names in OpenTelemetry. Those in seconds say so in their names: the Prometheus exporter of the
 * JavaScript SDK adds no unit, that of the collector adds one only where it is missing.
 */
export const METRICS = {
  'tillgate.authentication.duration.seconds': {
    ...DURATION,
    attributes: ['tillgate.outcome', 'tillgate.token.cache'],
    meaning: 'Time from the Authorization header to the decision of the gate.',
    worry: 'the 99th percentile of `miss` is above 50 ms',
  },
  'tillgate.decisions': {
    kind: 'counter',
    unit: '{decision}',
    attributes: ['tillgate.outcome', 'tillgate.reason', 'http.response.status_code', 'http.route'],
    meaning: 'Decisions of the gate, and refusals by guards after it; `unavailable` is a refusal with 503.',
    worry: 'any `unavailable`; more than 5% `wrong_audience`, `wrong_issuer` or `wrong_type`',
  },
  'tillgate.keys.age.seconds': {
    ...AGE,
    meaning: 'Time since the key set was fetched.',
    worry: 'twice `keysMaxAgeMs`',
  },
  'tillgate.keys.fetch.duration.seconds': {
    ...DURATION,
    attributes: ['tillgate.issuer', 'error.type'],
    meaning: 'Fetches of the key set, discovery included.',
    worry: 'every fetch has an `error.type`',
  },
  'tillgate.generations.staleness.seconds': {
    ...AGE,
    meaning: 'Time since the log of generations was read to its end.',
    worry: 'half of `maxStalenessMs`',
  },
  'tillgate.generations.silence.seconds': {
    ...AGE,
    meaning: 'Time since the publisher of the log of generations was heard from.',
    worry: 'above 60 s',
  },
  'tillgate.generations.floors': {
    ...GAUGE,
    unit: '{client}',
    meaning: 'Clients whose credential has changed within the lifetime of a token.',
    worry: 'it jumps',
  },
  'tillgate.generations.superseded.clients': {
    ...GAUGE,
    unit: '{client}',
    meaning: 'Clients whose superseded tokens came within 5 minutes; 1,000 at most.',
    worry: 'it stays above 0: a caller does not fetch a new token after a change; the log names it',
  },
  'tillgate.generations.unnoticed': {
    ...GAUGE,
    unit: '1',
    meaning: '1 where changes of credentials are not noticed: no source, and no stamped token was accepted; else 0.',
    worry: '1, where changes should end tokens before they expire',
  },
  'tillgate.generations.propagation.seconds': {
    ...DURATION,
    attributes: ['tillgate.issuer'],
    meaning:
      'Time from a change of a credential to its enforcement here; a log that is written anew counts its changes again.',
    worry: 'the 99th percentile is above 1 s',
  },
  'tillgate.introspection.duration.seconds': {
    ...DURATION,
    attributes: ['tillgate.issuer', 'error.type'],
    meaning: 'Calls of the introspection endpoint.',
    worry: 'the 99th percentile is above 1 s, or calls have an `error.type`',
  },
  'tillgate.introspection.waiting': {
    ...GAUGE,
    unit: '{token}',
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

/** Upper bounds of all histograms, in seconds: 10 us to 1 s, and what waits. */
export const BUCKETS = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10];

/** The route of a decision that has none of its own. */
export const UNMATCHED = 'unmatched';

/**
 * The attributes of each refusal. They are counted with 0 from the start: Prometheus sees no increase where a series appears
 * with its first event.
 */
export const REFUSALS = Object.entries(REASONS).map(([reason, { status }]) =>
  refusalAttributes(reason as Reason, status, UNMATCHED),
);

/** The attributes of one refusal. */
export function refusalAttributes(reason: Reason, status: number, route: string): Record<string, string | number> {
  return {
    'tillgate.outcome': status === 503 ? 'unavailable' : 'refused',
    'tillgate.reason': reason,
    'http.response.status_code': status,
    'http.route': route,
  };
}
