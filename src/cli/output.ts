import { styleText } from 'node:util';
import type { Environment } from 'tillgate/env';
import { escapeUnsafe } from 'tillgate/internal';
import type { CommandContext, Sink } from './command';

/** Text in a color, if the stream gets them: https://no-color.org, https://force-color.org. */
export function paint(color: Parameters<typeof styleText>[0], text: string, sink: Sink, env: Environment): string {
  const { NO_COLOR: no, FORCE_COLOR: force, TERM: terminal } = env;
  const hasColor = !no && (force ? force !== '0' : sink.isTTY === true && terminal !== 'dumb');
  return hasColor ? styleText(color, text, { validateStream: false }) : text;
}

/** Prints the result of a command: as one JSON document, or as text for people. */
export function print({ io, json }: CommandContext, document: unknown, text: string): void {
  write(io.stdout, json ? JSON.stringify(document, undefined, 2) : text);
}

/**
 * Writes a line or several. Some of it comes from others (client ids, Descriptions, claims, response bodies), so that
 * what could move the cursor or reorder the line is escaped; in JSON the escape means the same character.
 */
export function write(sink: Sink, text: string): void {
  // Not by an expression for whole lines: one of 16 MiB exceeds the stack of V8's expressions.
  const lines = text.split('\n').map((line) => line.split('\t').map(escapeUnsafe).join('\t'));
  sink.write(`${lines.join('\n')}\n`);
}

/** A text that a POSIX shell takes as it is. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** A text as one word of a command line that can be pasted. */
export function shellWord(text: string, platform: string = process.platform): string {
  if (platform === 'win32') return /^[\w.:\\/-]+$/.test(text) ? text : `"${text}"`;
  return /^[\w./:-]+$/.test(text) ? text : quoted(text);
}

/** Rows in columns of equal width. A cell is one line, whatever it holds. */
export function table(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(escapeUnsafe));
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}
