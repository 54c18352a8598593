import { METRICS, type MetricName, type MetricRow } from '../src/gate/opentelemetry/metrics';

/** The rows of the metrics with their names, and the names that Prometheus stores. */
export const METRIC_ROWS = Object.entries<MetricRow>(METRICS).map(([name, row]) => ({
  ...row,
  name: name as MetricName,
  prometheus: labelOf(name) + (row.kind === 'counter' ? '_total' : ''),
  labels: row.attributes.map(labelOf),
}));

/** The name of a metric or an attribute as Prometheus has it. */
function labelOf(name: string): string {
  return name.replaceAll('.', '_');
}
