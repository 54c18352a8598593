import type * as Prometheus from 'prom-client';
import type { GateStatus } from '../index';
import type { RequestEvent } from './request-observer';

/** Counts requests; exposes the counters in Prometheus' text format. */
export interface Metrics {
  readonly contentType: string;
  observe(event: RequestEvent): void;
  text(): Promise<string>;
}

/**
 * Metrics by prom-client, an optional peer dependency: `undefined` if it is not installed. The number of label values is
 * bounded: no path and no client id.
 */
export function createMetrics(isReady: () => boolean, status: () => GateStatus): Metrics | undefined {
  const prometheus = loadPrometheus();
  if (!prometheus) return undefined;
  const { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } = prometheus;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'tillgate_requests_total',
    help: 'Responses by method, status and reason of the refusal (empty: not refused).',
    labelNames: ['method', 'status', 'reason'],
    registers: [registry],
  });
  const durations = new Histogram({
    name: 'tillgate_request_duration_seconds',
    help: 'Time from the head of the request to the end of the response.',
    registers: [registry],
  });
  new Gauge({
    name: 'tillgate_ready',
    help: '1 while /readyz responds with 200.',
    registers: [registry],
    collect() {
      this.set(isReady() ? 1 : 0);
    },
  });
  const ages = {
    ageMs: ['tillgate_generations_staleness_seconds', 'Time since the log of generations was read to its end.'],
    silentMs: [
      'tillgate_generations_silence_seconds',
      'Time since the publisher of the log of generations was heard from.',
    ],
  } as const;
  for (const age of ['ageMs', 'silentMs'] as const) {
    const [name, help] = ages[age];
    new Gauge({
      name,
      help,
      labelNames: ['issuer'],
      registers: [registry],
      collect() {
        this.reset();
        for (const { issuer, generations } of status().issuers) {
          const ms = generations?.[age];
          if (ms !== undefined) this.set({ issuer }, ms / 1000);
        }
      },
    });
  }
  return {
    contentType: registry.contentType,
    observe({ method, status, reason = '', durationMs }) {
      requests.inc({ method, status, reason });
      durations.observe(durationMs / 1000);
    },
    text: () => registry.metrics(),
  };
}

function loadPrometheus(): typeof Prometheus | undefined {
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import would make it a required peer
    return require('prom-client') as typeof Prometheus;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
