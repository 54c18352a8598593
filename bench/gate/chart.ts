import type { Spread } from './rounds';

/** One group of bars. */
export interface Bars {
  readonly label: string;
  /** Shares of 1, one for each series: a bar as long as the median, and a line over the middle half. */
  readonly shares: readonly Spread[];
}

const COLOURS = ['#1f6f5c', '#5aa98f', '#c9a227'];
/** The longest line ends at LEFT + WIDTH: its percentage has its place behind it. */
const [LEFT, TOP, WIDTH, BAR, GAP] = [390, 70, 420, 14, 14] as const;

/** Draws horizontal bars as an SVG that is readable on a light and on a dark page. */
export function barChart(title: string, series: readonly string[], groups: readonly Bars[]): string {
  const groupHeight = series.length * BAR + GAP;
  const height = TOP + groups.length * groupHeight + 10;
  const legend = series.map((name, index) => {
    const x = LEFT + index * 140;
    return `<rect x="${x}" y="40" width="12" height="12" fill="${COLOURS[index]}"/>${text(x + 18, 50, name)}`;
  });
  const longest = Math.max(
    1,
    ...groups.flatMap(({ shares }) => shares.flatMap(({ median, upper }) => [median, upper])),
  );
  const rows = groups.map(({ label, shares }, group) => {
    const top = TOP + group * groupHeight;
    const bars = shares.map(({ median, lower, upper }, index) => {
      const y = top + index * BAR;
      const [end, from, to] = [median, lower, upper].map((share) => LEFT + Math.round((share / longest) * WIDTH)) as [
        number,
        number,
        number,
      ];
      const bar = `<rect x="${LEFT}" y="${y}" width="${end - LEFT}" height="${BAR - 2}" fill="${COLOURS[index]}"/>`;
      const half = `<path d="M${from} ${y + 6}H${to}" stroke="#222222" stroke-width="2"/>`;
      return `${bar}${half}${text(Math.max(end, to) + 6, y + 10, `${Math.round(median * 100)}%`)}`;
    });
    return `${text(LEFT - 10, top + (series.length * BAR) / 2 + 4, label, 'end')}${bars.join('')}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="860" height="${height}" viewBox="0 0 860 ${height}" role="img">`,
    `<title>${escapeXml(title)}</title><rect width="860" height="${height}" fill="#ffffff"/>`,
    text(20, 24, title),
    ...legend,
    ...rows,
    '</svg>\n',
  ].join('\n');
}

function text(x: number, y: number, content: string, anchor = 'start'): string {
  const style = 'font-family="sans-serif" font-size="12" fill="#222222"';
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" ${style}>${escapeXml(content)}</text>`;
}

function escapeXml(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
