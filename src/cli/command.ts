import { readFile } from 'node:fs/promises';
import type { Environment } from 'tillgate/env';

/** A stream as the command line uses it. */
export interface Sink {
  write(text: string): unknown;
  /** Whether it is a terminal. */
  readonly isTTY?: boolean;
  /** Width of the terminal. */
  readonly columns?: number;
}

/** What the command line uses of its process; tests inject their own. */
export interface CliIo {
  readonly env: Environment;
  /** The current directory: where `.env` is. */
  readonly cwd: string;
  /** Results: text for people, or one JSON document. */
  readonly stdout: Sink;
  /** Errors and log lines. */
  readonly stderr: Sink;
  readonly fetch: typeof fetch;
  /** Everything on standard input. */
  readonly readStdin: () => Promise<string>;
  /** Resolves when the process is asked to stop, with the signal, if it was one. */
  readonly untilStopped: () => Promise<NodeJS.Signals | void>;
  /** How this program is called, for hints: `npx @tillgate/cli`. */
  readonly programName: string;
}

/** What every command gets in addition to its own arguments. */
export interface CommandContext {
  readonly io: CliIo;
  /** Whether to print one JSON document instead of text. */
  readonly json: boolean;
  /** The environment without the file `.env`. */
  readonly given: Environment;
}

/** The options of all commands; each command declares the ones that it takes. */
export interface CommandOptions {
  readonly json?: true;
  readonly scope?: string;
  readonly secret?: string;
  readonly secretFile?: string;
  readonly as?: string;
  readonly token?: string;
  readonly data?: string;
  readonly description?: string;
  readonly add?: string;
  readonly remove?: string;
  readonly keepTokens?: true;
  readonly revokePrevious?: true;
  readonly openapi?: string;
  readonly tokenServer?: true;
  readonly embedded?: true;
  readonly scopes?: string;
  readonly log?: string;
  readonly audience?: string;
  readonly comparedBy?: string;
  readonly generations?: string;
  readonly url?: string;
  readonly client?: string;
  readonly port?: string;
  readonly authPort?: string;
  readonly javascript?: true;
  readonly header?: readonly string[];
  readonly issuerPort?: string;
  readonly preset?: string;
  readonly owner?: string;
  readonly baseline?: string;
  readonly class?: string;
  readonly depth?: string;
  readonly config?: string;
  readonly ignore?: readonly string[];
  readonly strict?: true;
  readonly hides?: true;
  readonly allowUntested?: true;
  readonly wait?: string;
}

/** One command of the table, or several under a common name: `clients list`. */
export interface CommandEntry {
  /** Name and arguments: `token <client>`. */
  readonly usage: string;
  readonly about: string;
  readonly options?: readonly (readonly [flags: string, about: string, isRepeatable?: true])[];
  /** Heading of the help that lists it, and a command line to start from. */
  readonly group?: string;
  readonly example?: string;
  readonly commands?: readonly CommandEntry[];
  /** Does the work; returns the exit code where it is not 0. Loads its module only when it is called: help is fast. */
  readonly run?: (context: CommandContext, options: CommandOptions, ...args: string[]) => Promise<number | void> | void;
}

/** Exit codes: denied or a failed check, wrong usage, wrong configuration (EX_CONFIG of sysexits). */
export const EXIT = { ok: 0, failed: 1, usage: 2, configuration: 78 } as const;

/** Ends a command with a message for people and an exit code. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Ends a command that was called in a wrong way. */
export function usageError(message: string): CliError {
  return new CliError(message, EXIT.usage);
}

/** What `work` returns; its errors are about what the command was given. */
export function orUsageError<Value>(work: () => Value, prefix = ''): Value {
  try {
    return work();
  } catch (error) {
    throw usageError(prefix + (error as Error).message);
  }
}

/** The text of a file that the command was given; `-` is standard input. */
export async function readGiven(io: CliIo, file: string, failure = `${file}: cannot be read`): Promise<string> {
  try {
    return await (file === '-' ? io.readStdin() : readFile(file, 'utf8'));
  } catch (error) {
    throw usageError(`${failure}: ${(error as Error).message}`);
  }
}

/** The headers of `-H`, as curl has them, by lower-case names. The message does not quote a value, which may be a secret. */
export function readHeaders(lines: readonly string[] = []): Readonly<Record<string, string>> {
  const pairs = lines.map((line) => {
    const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~\w-]+): *([\x20-\x7e]*)$/.exec(line) ?? [];
    if (name === '') throw usageError('--header: expected "Name: value", with printable ASCII');
    return [name.toLowerCase(), value];
  });
  return Object.fromEntries(pairs) as Record<string, string>;
}
