import { escapeUnsafe } from 'tillgate/internal';
import type { Logger } from 'tillgate';
import type { Settings } from 'tillgate/env';
import { usageError, type CliIo, type CommandOptions } from './command';
import { paint } from './output';

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
    throw usageError(`expected --log pretty or --log json, got ${JSON.stringify(log)}`);
  }
  const isPretty = (log ?? (stderr.isTTY === true && !production ? 'pretty' : 'json')) === 'pretty';
  const from = SEVERITY.indexOf(level);
  const writer = (name: keyof Logger) => (fields: object, msg: string) => {
    if (SEVERITY.indexOf(name) < from) return;
    // As the line of JSON has them, without what is undefined.
    const entry = JSON.stringify({ level: name, time: new Date().toISOString(), ...fields, msg });
    stderr.write(
      isPretty
        ? prettyLine(entry, (color, text) => paint(color, text, stderr, env))
        : `${entry.replace(/[\x7f-\uffff]/g, asEscape)}\n`,
    );
  };
  return { info: writer('info'), warn: writer('warn'), error: writer('error') };
}

/** In JSON any UTF-16 code unit may be escaped: a line is the same bytes on every terminal. */
function asEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const SEVERITY = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];
type Color = 'dim' | 'cyan' | 'yellow' | 'red';

const COLORS: Readonly<Record<string, Color>> = { info: 'cyan', warn: 'yellow', error: 'red' };

/** One JSON line of the log as text: `12:01:07 warn  the log cannot be read: fetch failed ageMs=1200`, and stacks below it. */
export function prettyLine(json: string, colored: (color: Color, text: string) => string): string {
  const { time, level, msg, detail, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const clock = colored('dim', new Date(String(time)).toTimeString().slice(0, 8));
  // A request to the token server.
  if (fields['status'] !== undefined && /^[A-Z]+ \//.test(textOf(msg))) {
    const { status, client, reason } = fields;
    const parts = [status, msg, client, reason, detail].filter((part) => part !== undefined);
    return `${clock} ${escapeUnsafe(parts.map(textOf).join(' '))}\n`;
  }
  const stacks = Object.values(fields).filter(isStack);
  const shown = Object.entries(fields).filter(([, value]) => !isStack(value));
  const parts = [
    clock,
    colored(COLORS[String(level)] ?? 'dim', String(level).padEnd(5)),
    escapeUnsafe(detail === undefined ? textOf(msg) : `${textOf(msg)}: ${textOf(detail)}`),
    ...shown.map(([name, value]) => colored('dim', escapeUnsafe(`${name}=${valueText(value)}`))),
  ];
  const below = stacks.flatMap((stack) => stack.split('\n')).map((line) => `         ${escapeUnsafe(line)}`);
  return `${[parts.join(' '), ...below].join('\n')}\n`;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function valueText(value: unknown): string {
  return typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value);
}

/** A stack trace gets lines of its own. */
function isStack(value: unknown): value is string {
  return typeof value === 'string' && value.includes('\n');
}
