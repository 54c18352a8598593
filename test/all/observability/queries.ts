import { METRIC_ROWS } from '../../../scripts/metric-rows';
import { REASONS } from '../../../src/gate/core/reasons';

/** Labels that a scrape adds to every metric. */
const OF_SCRAPE = ['job', 'instance'];
const KEYWORDS = ['by', 'on', 'and', 'or', 'unless', 'group_left'];

/** The metrics of the table by the names that Prometheus stores, with their labels. */
const STORED = new Map<string, readonly string[]>(
  METRIC_ROWS.flatMap(({ prometheus, kind, labels }) => {
    if (kind !== 'histogram') return [[prometheus, labels]] as const;
    const plain = ['_count', '_sum'].map((suffix) => [prometheus + suffix, labels] as const);
    return [...plain, [`${prometheus}_bucket`, [...labels, 'le']] as const];
  }),
);

/**
 * Names in a PromQL expression that the tables of metrics and reasons do not have: metrics, labels of a metric's selector,
 * labels to group by, and reasons.
 *
 * @param recorded - names of recording rules
 */
export function unknownNames(expr: string, recorded: readonly string[] = []): readonly string[] {
  const unknown: string[] = [];
  const plain = expr.replace(/"[^"]*"/g, '""').replace(/\[\w+\]/g, '');
  const identifiers = [...plain.matchAll(/(?<![\w:])([a-z_][\w:]*)\b(?!\s*\(|\s+by\b)/gi)].map(([name]) => name);
  const metrics = identifiers.filter((name) => STORED.has(name));
  const labels = [...OF_SCRAPE, ...metrics.flatMap((name) => STORED.get(name) ?? [])];
  const known = [...metrics, ...labels, ...recorded, ...KEYWORDS];
  unknown.push(...identifiers.filter((name) => !known.includes(name)));
  for (const [, name = '', matchers = ''] of plain.matchAll(/([\w:]+)\{([^}]*)\}/g)) {
    const own = [...OF_SCRAPE, ...(STORED.get(name) ?? [])];
    const used = [...matchers.matchAll(/(\w+)\s*[=!]/g)].map(([, label = '']) => label);
    unknown.push(...used.filter((label) => !own.includes(label)).map((label) => `${name}{${label}}`));
  }
  for (const [, pattern = ''] of expr.matchAll(/tillgate_reason=~?"([^"]*)"/g)) {
    const alternatives = pattern.split('|').map((one) => ({ one, matches: new RegExp(`^(?:${one})$`) }));
    const strange = alternatives.filter(({ matches }) => !Object.keys(REASONS).some((reason) => matches.test(reason)));
    unknown.push(...strange.map(({ one }) => one));
  }
  return unknown;
}
