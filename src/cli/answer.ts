import type { CommandContext } from './command';

/** Prints the answer of a command: as one JSON document, or as text for people. */
export function print({ io, json }: CommandContext, document: unknown, text: string): void {
  io.stdout.write(json ? `${JSON.stringify(document, undefined, 2)}\n` : `${text}\n`);
}

/** Rows in columns of equal width. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
