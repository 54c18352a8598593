import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump, load } from 'js-yaml';
import { ISSUER_OPTIONS } from '../../../src/gate/verifier/read-options';
import { requireCommand } from '../setup/packages';
import { DASHBOARD, queries } from './dashboard';
import { unknownNames } from './queries';

interface Rule {
  readonly alert?: string;
  readonly annotations?: { readonly runbook_url: string };
  readonly record?: string;
  readonly expr: string;
}

const FILE = join(__dirname, '../../../deploy/observability/alerts.yaml');
const { groups } = load(readFileSync(FILE, 'utf8')) as { groups: { rules: Rule[] }[] };
const RULES = groups.flatMap(({ rules }) => rules);
const RECORDED = RULES.flatMap(({ record }) => record ?? []);

const folder = mkdtempSync(join(tmpdir(), 'tillgate-rules-'));
beforeAll(() => requireCommand('promtool', 'apt-get install prometheus'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What promtool says, and whether it is content. */
function promtool(...args: readonly string[]): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  return { status, said: stdout + stderr };
}

/** Seconds between two samples, and between two evaluations. */
const STEP = 15;
/** Each phase of a scenario: below the threshold, above it, below it again. */
const PHASE = 600;
const OF_PHASE = PHASE / STEP;

/** Samples of a gauge with a value in each phase; of a counter, whose values are increases in a second. */
type Phases = readonly [below: number, above: number];
const gauge = ([below, above]: Phases): readonly number[] =>
  [below, above, below].flatMap((value) => Array<number>(OF_PHASE).fill(value));
const counter = (phases: Phases): readonly number[] => {
  let total = 0;
  return gauge(phases).map((perSecond) => (total += perSecond * STEP));
};

interface Scenario {
  /** Values by series. */
  readonly series: Readonly<Record<string, readonly number[]>>;
  /** Alerts that fire, or values of a query, by seconds from the start. */
  readonly expected: Readonly<Record<number, Readonly<Record<string, number>>>>;
  readonly query?: string;
}

/** Runs the rules by `promtool test rules`; returns what differs from the expectation. */
function differences({ series, expected, query }: Scenario): string {
  const test = {
    interval: `${STEP}s`,
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values: values.join(' ') })),
    promql_expr_test: Object.entries(expected).map(([seconds, samples]) => ({
      expr: query ?? 'count by (alertname) (ALERTS{alertstate="firing"})',
      eval_time: `${seconds}s`,
      exp_samples: Object.entries(samples).map(([name, value]) => ({
        labels: query === undefined ? `{alertname="${name}"}` : name,
        value,
      })),
    })),
  };
  const path = join(folder, 'test.yaml');
  writeFileSync(path, dump({ rule_files: [FILE], evaluation_interval: `${STEP}s`, tests: [test] }));
  const { status, said } = promtool('test', 'rules', path);
  return status === 0 ? '' : said;
}

const decisions = (reason: string, more = ''): string =>
  `tillgate_decisions_total{job="api",tillgate_reason="${reason}"${more}}`;
const REQUESTS = 'tillgate_authentication_duration_seconds_count{job="api"}';
const of = (name: string): string => `${name}{job="api",tillgate_issuer="https://login.example.com"}`;

/** The seconds after the threshold was passed: the last at which the alert does not fire yet, the first at which it does. */
type Delay = readonly [last: number, first: number];
const ALERTS: Readonly<Record<string, readonly [series: Scenario['series'], delay: Delay]>> = {
  TillgateKeysOld: [{ [of('tillgate_keys_age_seconds')]: gauge([1200, 1201]) }, [45, 60]],
  TillgateGenerationsStale: [{ [of('tillgate_generations_staleness_seconds')]: gauge([30, 31]) }, [-15, 0]],
  TillgatePublisherSilent: [{ [of('tillgate_generations_silence_seconds')]: gauge([450, 451]) }, [-15, 0]],
  TillgateUnavailable: [{ [decisions('generations_unavailable')]: counter([0, 0.1]) }, [105, 120]],
  TillgateWrongTokens: [
    {
      [REQUESTS]: counter([10, 10]),
      [decisions('wrong_audience')]: counter([0.2, 1]),
      [decisions('wrong_type')]: counter([0.2, 1]),
    },
    [300, 360],
  ],
  TillgateForgedTokens: [
    { [decisions('bad_signature')]: counter([0.5, 1]), [decisions('algorithm_not_allowed')]: counter([0.4, 0.4]) },
    [45, 90],
  ],
  TillgateSuperseded: [{ [REQUESTS]: counter([10, 10]), [decisions('superseded')]: counter([1.9, 6]) }, [-15, 15]],
};

describe('deploy/observability/alerts.yaml', () => {
  it('is valid, as promtool check rules sees it', () => {
    const { status, said } = promtool('check', 'rules', '--lint=all', '--lint-fatal', FILE);
    expect({ status, said }).toEqual({ status: 0, said: expect.stringContaining(`SUCCESS: ${RULES.length} rules`) });
  });

  it.each(RULES.map((rule) => [rule.alert ?? rule.record, rule.expr]))(
    '%s has metrics, labels and reasons that exist',
    (_name, expr) => {
      expect(unknownNames(expr, RECORDED)).toEqual([]);
    },
  );

  it('would be told of a metric, a label and a reason that do not exist', () => {
    const expr =
      'sum by (shop) (rate(tillgate_decision_total[1m])) / tillgate_decisions_total{le="1",tillgate_reason="bad"}';
    expect(unknownNames(expr)).toEqual([
      'shop',
      'tillgate_decision_total',
      'le',
      'tillgate_decisions_total{le}',
      'bad',
    ]);
  });

  it('has a scenario for each alert', () => {
    expect(RULES.flatMap(({ alert }) => alert ?? [])).toEqual(Object.keys(ALERTS));
  });

  it.each(Object.entries(ALERTS))(
    '%s fires above its threshold, alone, and clears',
    (alert, [series, [last, first]]) => {
      const expected = {
        [PHASE + last]: {},
        [PHASE + first]: { [alert]: 1 },
        [2 * PHASE - STEP]: { [alert]: 1 },
        [3 * PHASE - STEP]: {},
      };
      expect(differences({ series, expected })).toBe('');
    },
  );

  it('refers each alert to its section of the runbook, in which every section belongs to an alert', () => {
    const page = readFileSync(join(__dirname, '../../../deploy/observability/runbook.md'), 'utf8');
    const sections = [...page.matchAll(/^## (.*)$/gm)].map(([, alert = '']) => [alert, alert.toLowerCase()]);
    const alerts = RULES.flatMap(({ alert, annotations }) => (annotations ? [[alert, annotations.runbook_url]] : []));
    expect(alerts).toEqual(sections.map(([alert, anchor]) => [alert, `deploy/observability/runbook.md#${anchor}`]));
    expect(page.split(/\s+/).length).toBeLessThanOrEqual(900);
  });

  it('does not blame the publisher of a log that cannot be read', () => {
    const series = {
      [of('tillgate_generations_silence_seconds')]: gauge([600, 600]),
      [of('tillgate_generations_staleness_seconds')]: gauge([5, 600]),
    };
    const [silent, stale] = [{ TillgatePublisherSilent: 1 }, { TillgateGenerationsStale: 1 }];
    expect(differences({ series, expected: { [PHASE - STEP]: silent, [PHASE]: stale, [2 * PHASE]: silent } })).toBe('');
  });

  it('is silent about ten requests in a night', () => {
    const rare = [...Array<number>(OF_PHASE).fill(0), ...Array<number>(OF_PHASE).fill(9)];
    const few = { [REQUESTS]: rare, [decisions('wrong_audience')]: rare, [decisions('superseded')]: rare };
    const expected = { [PHASE]: {}, [PHASE + 30]: {}, [PHASE + 330]: {} };
    expect(differences({ series: few, expected })).toBe('');
  });

  it('has thresholds that belong to the defaults of the options', () => {
    const threshold = (name: string): number =>
      Number(/> (\d+)$/.exec(RULES.find(({ alert }) => alert === name)?.expr ?? '')?.[1]);
    expect(threshold('TillgateKeysOld')).toBe((2 * Number(ISSUER_OPTIONS.keysMaxAgeMs.fallback)) / 1000);
    expect(threshold('TillgateGenerationsStale')).toBe(Number(ISSUER_OPTIONS.maxStalenessMs.fallback) / 2 / 1000);
    expect(threshold('TillgatePublisherSilent')).toBe(Number(ISSUER_OPTIONS.maxSilenceMs.fallback) / 2 / 1000);
  });

  const bucket = (le: string): string => `tillgate_generations_propagation_seconds_bucket{job="api",le="${le}"}`;
  const late = {
    'tillgate_generations_propagation_seconds_count{job="api"}': counter([8, 8]),
    [bucket('1')]: counter([7, 7]),
    [bucket('10')]: counter([7.5, 7.5]),
  };
  const unavailable = { [REQUESTS]: counter([8, 8]), [decisions('keys_unavailable')]: counter([1, 1]) };
  it.each([
    ['job:tillgate_requests:rate5m * 1000', { [REQUESTS]: counter([8, 8]) }, 8000],
    ['job:tillgate_available:ratio30d * 1000', unavailable, 875],
    ['job:tillgate_available:ratio30d * 1000', { [REQUESTS]: counter([8, 8]) }, 1000],
    ['job:tillgate_enforced_within_1s:ratio30d * 1000', late, 875],
    ['job:tillgate_enforced_within_1s:ratio30d * 1000', { ...late, [bucket('1.0')]: counter([0, 0]) }, 875],
    ['job:tillgate_enforced_after_10s:increase30d', late, 900],
  ])('records %s', (record, series, value) => {
    const expected = { [3 * PHASE - STEP]: { '{job="api"}': value } };
    expect(differences({ series, expected, query: `round(${record})` })).toBe('');
  });
});

describe('deploy/observability/dashboard.json', () => {
  it.each(queries('1m'))('$title has metrics, labels and reasons that exist: $expr', ({ expr }) => {
    expect(expr).not.toContain('$');
    expect(unknownNames(expr, RECORDED)).toEqual([]);
  });

  it('has panels of three to a row, without a gap', () => {
    const { panels } = DASHBOARD;
    const heights = [4, 8, 8, 8, 8];
    const expected = panels.map((_panel, index) => {
      const row = Math.floor(index / 3);
      const y = heights.slice(0, row).reduce((sum, height) => sum + height, 0);
      return { x: (index % 3) * 8, y, w: 8, h: heights[row] };
    });
    expect(panels.map(({ gridPos }) => gridPos)).toEqual(expected);
  });
});
