import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../support/eventually';
import { freePort } from '../support/free-port';
import { queries } from './dashboard';
import { KEYS_MAX_AGE_MS, MAX_STALENESS_MS, startFaultyApi } from './faulty-api';
import type { FaultyApi } from './faulty-api';
import { startPrometheus } from './prometheus';
import type { PrometheusServer } from './prometheus';

const RULES = readFileSync(join(__dirname, '../../../deploy/observability/alerts.yaml'), 'utf8');
/** The rules in seconds instead of minutes, with thresholds for the options of this API: otherwise as they are. */
const FAST = [
  [/\[[15]m\]/g, '[3s]'],
  [/for: \dm/g, 'for: 1s'],
  [/interval: 1m/g, 'interval: 1s'],
  [/> 1200$/gm, `> ${(2 * KEYS_MAX_AGE_MS) / 1000}`],
  // Half of so few seconds is less than the log is at rest between two reads.
  [/> 30$/gm, `> ${(0.75 * MAX_STALENESS_MS) / 1000}`],
  [/> 450$/gm, '> 3'],
].reduce((rules, [from, to]) => rules.replace(from as RegExp, to as string), RULES);

interface Alert {
  readonly state: 'pending' | 'firing';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: { readonly summary: string };
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly health: string }[] }[];
}

let api: FaultyApi;
let prometheus: PrometheusServer;

beforeAll(async () => {
  const port = await freePort();
  [api, prometheus] = await Promise.all([startFaultyApi(port), startPrometheus(`127.0.0.1:${port}`, FAST)]);
});
afterAll(() => Promise.all([api?.stop(), prometheus?.stop()]));

/** What fires now, by the names of the alerts. */
async function firing(): Promise<ReadonlyMap<string | undefined, Alert>> {
  const { alerts } = await prometheus.get<{ readonly alerts: readonly Alert[] }>('alerts');
  const now = alerts.filter(({ state }) => state === 'firing');
  return new Map(now.map((alert) => [alert.labels['alertname'], alert]));
}

/** Waits until exactly these alerts fire; says on failure which did. */
async function expectFiring(...names: readonly string[]): Promise<readonly string[]> {
  let last: ReadonlyMap<string | undefined, Alert> = new Map();
  const what = `${names.length} alerts fire`;
  await eventually(what, async () => {
    last = await firing();
    return [...last.keys()].sort().join() === [...names].sort().join();
  }).catch((error: unknown) => {
    throw new Error(`expected ${names.join()}; ${[...last.keys()].join() || 'none'} fire`, { cause: error });
  });
  return names.map((name) => last.get(name)?.annotations.summary ?? '');
}

it('fires each alert at a running API, and clears it when the cause has gone', async () => {
  api.traffic = ['good', 'forged', 'wrong', 'superseded'];
  api.isPublishing = false;
  const first = ['TillgatePublisherSilent', 'TillgateWrongTokens', 'TillgateForgedTokens', 'TillgateSuperseded'];
  await expectFiring(...first);

  api.traffic = ['good'];
  api.isPublishing = true;
  await expectFiring();

  await api.cut();
  expect(await expectFiring('TillgateKeysOld', 'TillgateGenerationsStale', 'TillgateUnavailable')).toEqual([
    expect.stringMatching(/^The keys of http:\S+ could not be refreshed for \d[\d.]*s$/),
    expect.stringMatching(/^The generations of http:\S+ were last read \d[\d.]*s ago$/),
    expect.stringMatching(/^\d[\d.]* requests a second get 503: keys_unavailable$/),
  ]);

  await api.restore();
  await expectFiring();

  const { groups } = await prometheus.get<Rules>('rules');
  const failed = groups.flatMap(({ rules }) => rules).filter(({ health }) => health !== 'ok');
  expect(failed).toEqual([]);
});

it('has series for each query of the dashboard, except for what this API does not do', async () => {
  const empty: string[] = [];
  for (const { title, expr } of queries('3s')) {
    const { result } = await prometheus.get<{ readonly result: object[] }>('query', { query: expr });
    if (result.length === 0) empty.push(title);
  }
  expect([...new Set(empty)]).toEqual(['Refused by route', 'Introspection', 'DPoP proofs']);
});
