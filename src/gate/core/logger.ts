import { callUnwaited } from './callbacks';
import { attempt } from './objects';

/** Where a gate reports to. pino, bunyan and the like fit as they are. Fields never hold a token, a secret or a header value. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The default: warnings and errors to the console as one line each. Refusals are counted there: `RefusalCounter`. */
export const consoleLogger: Logger = {
  info() {},
  warn: (fields, message) => writeLine('warn', fields, message),
  error: (fields, message) => writeLine('error', fields, message),
};

/** What `logger: false` means; the gate prepares no line for it. */
export const silentLogger: Logger = { info() {}, warn() {}, error() {} };

/** Test environments replace the methods of the console by ones that throw. */
function writeLine(level: 'warn' | 'error', fields: object, message: string): void {
  callUnwaited(
    () => console[level](`tillgate: ${message} ${escapeNonAscii(JSON.stringify(fields))}`),
    () => undefined,
  );
}

/** By the loggers of apps, and by themselves. */
const guardedLoggers = new WeakMap<Logger, Logger>([
  [consoleLogger, consoleLogger],
  [silentLogger, silentLogger],
]);

/**
 * The same logger, whose methods neither throw nor reject: a line that cannot be written changes no response and ends no
 * process. The console gets the first failure. One logger has one guard.
 */
export function guardLogger(logger: Logger): Logger {
  const known = guardedLoggers.get(logger);
  if (known) return known;
  let hasFailed = false;
  function failed(error: unknown): void {
    if (hasFailed) return;
    hasFailed = true;
    consoleLogger.error({ error: errorText(error) }, 'the logger failed, further failures of it are not reported');
  }
  const made: Logger = {
    info: (fields, message) => callUnwaited(() => logger.info(fields, message), failed),
    warn: (fields, message) => callUnwaited(() => logger.warn(fields, message), failed),
    error: (fields, message) => callUnwaited(() => logger.error(fields, message), failed),
  };
  guardedLoggers.set(logger, made);
  guardedLoggers.set(made, made);
  return made;
}

/**
 * C0 and C1 controls, line separators, and the format characters that reorder or hide text (Unicode Standard Annex 9,
 * zero-width characters, the byte order mark), and lone surrogates.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** Text of somebody else as a terminal may show it: what could move the cursor or reorder the line is escaped. */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, escapeUnits);
}

/**
 * JSON in printable ASCII. JSON allows characters that terminals take for commands and log viewers for line breaks
 * (U+009B, U+2028, U+202E).
 */
export function escapeNonAscii(json: string): string {
  return json.replace(/[\x7f-\uffff]/g, escapeUnits);
}

function escapeUnits(text: string): string {
  return Array.from({ length: text.length }, (_, index) => {
    return `\\u${text.charCodeAt(index).toString(16).padStart(4, '0')}`;
  }).join('');
}

const MAX_SEGMENT = 64;
const MAX_PATH = 512;

/**
 * The path of a request target as a log may show it: without scheme, user and host, without query and fragment, and
 * without anything that can be a token. Some callers put one there by mistake, and no token is ever logged.
 *
 * @example
 * ```ts
 * import { loggablePath } from 'tillgate/internal';
 *
 * console.log(loggablePath('/v1/orders/ord_0001?access_token=x')); // /v1/orders/ord_0001
 * ```
 */
export function loggablePath(target: string): string {
  const [path = ''] = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split(/[?#]/, 1);
  // Every token is longer than an id of the scaffold: percent-encoded, opaque, or only a part of one.
  const short = path.replace(/[^/]+/g, (segment) => (segment.length > MAX_SEGMENT ? `[${segment.length}]` : segment));
  return short.replace(/eyJ[\w-]{8,}(\.[\w-]*)*/g, '[token]').slice(0, MAX_PATH);
}

/** The stack of an error with those of its causes, or the text of anything else that was thrown. Never throws itself. */
export function errorText(error: unknown, causes = MAX_CAUSES): string {
  const [text, cause] = attempt(() => textAndCause(error)) ?? [NO_TEXT];
  return cause && causes > 0 ? `${text}\ncaused by ${errorText(cause.value, causes - 1)}` : text;
}

/** An error can be its own cause. */
const MAX_CAUSES = 4;

function textAndCause(error: unknown): readonly [text: string, cause?: { readonly value: unknown } | false] {
  if (!(error instanceof Error)) return [String(error)];
  return [error.stack ?? error.message, Object.hasOwn(error, 'cause') && { value: error.cause }];
}

const NO_TEXT = 'something without a text';

/**
 * Name and code of an error or of its cause, such as `TypeError (ECONNREFUSED)`, without its message, which can contain
 * anything.
 */
export function errorLabel(error: unknown): string {
  return attempt(() => nameOfError(error)) ?? NO_TEXT;
}

function nameOfError(error: unknown): string {
  // Not `instanceof Error`: inside Jest, Node's own errors come from another realm.
  const { name, code, cause } = Object(error) as Readonly<Record<string, unknown>>;
  const label = wordOf(name) ?? `a thrown ${typeof error}`;
  const found = wordOf(code) ?? wordOf((Object(cause) as { readonly code?: unknown }).code);
  return found === undefined ? label : `${label} (${found})`;
}

function wordOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^\w{1,60}$/.test(value) ? value : undefined;
}
