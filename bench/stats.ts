/** The percentile of a list of values by nearest rank; `share` is between 0 and 1. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN;
}

/** The 50th percentile. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** A Markdown table, ready to be pasted into the docs. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** One decimal. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
