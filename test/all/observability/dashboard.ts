import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A panel of the dashboard, as far as tests read it. */
interface Panel {
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

export const DASHBOARD = JSON.parse(
  readFileSync(join(__dirname, '../../../deploy/observability/dashboard.json'), 'utf8'),
) as { readonly schemaVersion: number; readonly panels: readonly Panel[] };

/** The queries of all panels, as Grafana sends them when every job is chosen and rates are over `window`. */
export function queries(window: string): readonly { readonly title: string; readonly expr: string }[] {
  return DASHBOARD.panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => ({
      title,
      expr: expr.replaceAll('$__rate_interval', window).replaceAll('job=~"$job"', 'job=~".+"'),
    })),
  );
}
