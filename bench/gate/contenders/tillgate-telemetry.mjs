import { createRequire } from 'node:module';
import { setInterval } from 'node:timers';
import { mount as mountGate } from './tillgate.mjs';

const require = createRequire(import.meta.url);

/** The gate with the metrics of the OpenTelemetry SDK, collected every second. */
export async function mount(app, context) {
  const { metrics } = require('@opentelemetry/api');
  const sdk = require('@opentelemetry/sdk-metrics');
  const { observe } = require('../../../src/gate/dist/opentelemetry/index.js');
  const exporter = new sdk.InMemoryMetricExporter(sdk.AggregationTemporality.DELTA);
  const reader = new sdk.PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: 1_000,
    exportTimeoutMillis: 500,
  });
  metrics.setGlobalMeterProvider(new sdk.MeterProvider({ readers: [reader] }));
  setInterval(() => exporter.reset(), 1_000).unref();
  observe();
  await mountGate(app, context);
}
