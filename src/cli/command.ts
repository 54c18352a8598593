import type { CliIo } from './io';

/** What every command gets in addition to its own arguments. */
export interface CommandContext {
  readonly io: CliIo;
  /** Whether to print one JSON document instead of text. */
  readonly json: boolean;
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
  readonly keepTokens?: true;
  readonly revokePrevious?: true;
  readonly check?: true;
  readonly app?: string;
  readonly openapi?: string;
  readonly generations?: string;
  readonly generation?: string;
  readonly since?: string;
}

/** One command of the table: its usage and the function that runs it. */
export interface CommandEntry {
  /** Name and arguments: `token <client>`. */
  readonly usage: string;
  readonly about: string;
  readonly options?: readonly (readonly [flags: string, about: string])[];
  /** Optional peers that it cannot run without. */
  readonly needs?: readonly string[];
  /** Does the work and returns the exit code. Loads its module only when it is called, so that help is fast. */
  readonly run: (context: CommandContext, options: CommandOptions, ...args: string[]) => Promise<number>;
}

/** Commands under a common name: `clients list`. */
export interface CommandGroup {
  readonly name: string;
  readonly about: string;
  readonly commands: readonly CommandEntry[];
}
