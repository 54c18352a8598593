import { escapeNonAscii, escapeUnsafe } from 'tillgate/internal';
import type { Logger } from 'tillgate';
import type { Settings } from 'tillgate/env';
import { CliError, EXIT, hasColor } from './command';
import type { CliIo, CommandOptions } from './command';

/**
 * Opens the log of a server on stderr: text for people in a terminal during development, JSON lines everywhere else.
 *
 * @throws CliError when `--log` is neither `pretty` nor `json`
 */
export function openLog(
  { stderr, env }: Pick<CliIo, 'stderr' | 'env'>,
  { log }: Pick<CommandOptions, 'log'>,
  { logLevel: level, production }: Pick<Settings, 'logLevel' | 'production'>,
): Logger {
  if (log !== undefined && log !== 'pretty' && log !== 'json') {
    throw new CliError(`expected --log pretty or --log json, got ${JSON.stringify(log)}`, EXIT.usage);
  }
  const isTerminal = stderr.isTTY === true;
  if ((log ?? (isTerminal && !production ? 'pretty' : 'json')) === 'json') {
    return jsonLog(level, stderr);
  }
  const isColored = hasColor(stderr, env);
  const destination = {
    write: (line: string) => void stderr.write(prettyLine(line, stderr.columns ?? Infinity, isColored)),
  };
  return jsonLog(level, destination);
}

const SEVERITY = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** JSON lines, as pino writes them. */
function jsonLog(level: string, destination: { write(line: string): unknown }): Logger {
  const from = SEVERITY.indexOf(level);
  const writer = (name: keyof Logger) => (fields: object, msg: string) => {
    if (SEVERITY.indexOf(name) < from) return;
    const line = JSON.stringify({ level: name, time: new Date().toISOString(), ...fields, msg });
    destination.write(`${escapeNonAscii(line)}\n`);
  };
  return { info: writer('info'), warn: writer('warn'), error: writer('error') };
}

type Color = keyof typeof COLORS;

/** One piece of a line. */
type Part = readonly [text: unknown, color?: Color];

const COLORS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
const LEVEL_COLORS: Readonly<Record<string, Color>> = { info: 'cyan', warn: 'yellow', error: 'red', fatal: 'red' };

/** Width of the time and a blank: further lines of an entry begin below what follows the time. */
const INDENT = 9;
/** A narrower terminal breaks lines by itself. */
const MIN_COLUMNS = 40;

/** The messages of requests, at the API and at the token server. */
const REQUEST = /^(token server )?request\b/;

/** One JSON line of the log as text, with a line break at its end. */
export function prettyLine(json: string, columns: number, hasColor: boolean): string {
  const { time, level, msg, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const head: Part = [new Date(String(time)).toTimeString().slice(0, 8), 'dim'];
  const isRequest = typeof fields['status'] === 'number' && REQUEST.test(String(msg));
  const parts = isRequest ? requestParts(fields) : messageParts(String(level), msg, fields);
  const lines = Object.values(fields).flatMap((value) => (isStack(value) ? value.split('\n') : []));
  return [
    layOut([head, ...parts], Math.max(columns, MIN_COLUMNS), hasColor),
    ...lines.map((line) => ' '.repeat(INDENT) + paint(escapeUnsafe(line), 'dim', hasColor)),
    '',
  ].join('\n');
}

/** `403 POST /v1/orders pos-terminal insufficient_scope needs orders:write, has orders:read` */
function requestParts(fields: Readonly<Record<string, unknown>>): readonly Part[] {
  const { status, method, path, client_id, reason, error = reason, detail, aborted, duration_ms } = fields;
  const code = Number(status);
  return [
    [status, code >= 500 ? 'red' : code >= 400 ? 'yellow' : 'green'],
    [method && textOf(method).padEnd(4)],
    [path],
    [client_id, 'cyan'],
    [error, 'bold'],
    [detail, 'dim'],
    [aborted && 'aborted', 'yellow'],
    [error === undefined && duration_ms !== undefined && `${textOf(duration_ms)} ms`, 'dim'],
  ];
}

/** `warn  generations cannot be read: fetch failed ageMs=1200` */
function messageParts(
  level: string,
  message: unknown,
  { detail, ...fields }: Readonly<Record<string, unknown>>,
): readonly Part[] {
  const shown = Object.entries(fields).filter(([, value]) => !isStack(value));
  const hasDetail = detail !== undefined && !isStack(detail);
  return [
    [level.padEnd(5), LEVEL_COLORS[level] ?? 'dim'],
    [hasDetail ? `${textOf(message)}:` : message],
    [hasDetail && detail],
    ...shown.map(([name, value]): Part => [`${name}=${valueText(value)}`, 'dim']),
  ];
}

function valueText(value: unknown): string {
  return typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value);
}

/** A stack trace gets lines of its own. */
function isStack(value: unknown): value is string {
  return typeof value === 'string' && value.includes('\n');
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Breaks before a part that does not fit, and within a part only where it is longer than a line. */
function layOut(parts: readonly Part[], columns: number, hasColor: boolean): string {
  let [text, used] = ['', 0];
  for (const [value, color] of parts) {
    if (value === undefined || value === false || value === '') continue;
    const escaped = escapeUnsafe(textOf(value));
    for (const word of escaped.length > columns - INDENT ? escaped.split(' ') : [escaped]) {
      const breaks = used > 0 && used + 1 + word.length > columns;
      if (used > 0) text += breaks ? `\n${' '.repeat(INDENT)}` : ' ';
      used = (breaks ? INDENT : used > 0 ? used + 1 : 0) + word.length;
      text += paint(word, color, hasColor);
    }
  }
  return text;
}

function paint(text: string, color: Color | undefined, hasColor: boolean): string {
  return hasColor && color !== undefined ? `\x1b[${COLORS[color]}m${text}\x1b[0m` : text;
}
