import { escapeUnsafe } from '../core/logger';
import type { CommandContext } from './command';
import type { Sink } from './io';

/** Prints the result of a command: as one JSON document, or as text for people. */
export function print({ io, json }: CommandContext, document: unknown, text: string): void {
  write(io.stdout, json ? JSON.stringify(document, undefined, 2) : text);
}

/**
 * Writes a line or several. Some of it comes from others (client ids, Descriptions, claims, response bodies), so that
 * what could move the cursor or reorder the line is escaped; in JSON the escape means the same character.
 */
export function write(sink: Sink, text: string): void {
  sink.write(`${text.replace(/[^\n\t]+/g, escapeUnsafe)}\n`);
}

/** Rows in columns of equal width. A cell is one line, whatever it holds. */
export function table(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(escapeUnsafe));
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
