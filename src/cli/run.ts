import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseEnv } from 'node:util';
import { Command, CommanderError } from 'commander';
import { attempt } from 'tillgate/internal';
import { ConfigurationError } from 'tillgate';
import type { Environment } from 'tillgate/env';
import { CliError, EXIT, type CliIo, type CommandEntry, type CommandOptions } from './command';
import { paint, write } from './output';
import { COMMANDS } from './command-table';
import { VERSION } from './version';

/**
 * Runs one command line and returns its exit code: 0 ok, 1 denied or failed, 2 usage, 78 configuration. Results go to
 * stdout, errors to stderr, as a JSON document with `--json`; nothing is thrown.
 *
 * @param argv - the arguments, without the interpreter and the script
 */
export async function run(argv: readonly string[], io: CliIo): Promise<number> {
  const json = argv.includes('--json');
  let exitCode: number = EXIT.ok;
  const program = createProgram(io, json, (code) => (exitCode = code));
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return exitCode;
  } catch (error) {
    return report(error, io, json);
  }
}

/** The command line of the table; `finish` receives the exit code of the command that ran. */
function createProgram(io: CliIo, json: boolean, finish: (exitCode: number) => void): Command {
  const program = new Command('tillgate')
    .description('The gate in front of a commerce REST API: servers, tokens, client credentials.')
    .version(VERSION)
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      // As JSON it is written once, by report().
      writeErr: (text) => void (json || io.stderr.write(text)),
      outputError: (text, writeText) => writeText(text.replace(/^error: /, `${prefix(io)} `)),
    })
    .configureHelp({ styleTitle: (text) => paint('bold', text, io.stdout, io.env) })
    .exitOverride();

  function add(parent: Command, entry: CommandEntry): void {
    const { usage, about, options: declared = [], commands = [], group, example, run: work } = entry;
    const command = parent.command(usage).description(about);
    if (group !== undefined) command.helpGroup(`${group}:`);
    if (example !== undefined) command.addHelpText('after', `\nExample:\n  ${io.programName} ${example}`);
    for (const below of commands) add(command, below);
    if (!work) return;
    command.option('--json', 'print one JSON document');
    for (const [flags, text, isRepeatable] of declared) {
      if (isRepeatable) command.option(flags, text, (one: string, before: string[] = []) => [...before, one]);
      else command.option(flags, text);
    }
    command.action(async () => {
      const options = command.opts<CommandOptions>();
      const context = { io: { ...io, env: environmentOf(io, options) }, json, given: io.env };
      finish((await work(context, options, ...command.args)) ?? EXIT.ok);
    });
  }

  for (const entry of COMMANDS) add(program, entry);
  return program;
}

/** The variables of a command: its options, then the environment, then, unless in production, the file `.env`. */
export function environmentOf(
  { env, cwd }: Pick<CliIo, 'env' | 'cwd'>,
  { port, authPort }: CommandOptions,
): Environment {
  const text = env['NODE_ENV'] === 'production' ? undefined : attempt(() => textOf(readFileSync(join(cwd, '.env'))));
  return {
    ...parseEnv(text ?? ''),
    ...env,
    ...(port !== undefined && { TILLGATE_PORT: port }),
    ...(authPort !== undefined && { TILLGATE_AUTH_PORT: authPort }),
  };
}

/** PowerShell writes files in UTF-16. */
function textOf(bytes: Buffer): string {
  const mark = bytes.subarray(0, 2).toString('hex');
  return new TextDecoder(mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8').decode(bytes);
}

/** Begins every error. */
const prefix = ({ stderr, env }: CliIo): string => paint('red', 'tillgate:', stderr, env);

function report(error: unknown, io: CliIo, json: boolean): number {
  const { stderr } = io;
  const exitCode = exitCodeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  if (json && exitCode !== EXIT.ok) {
    const problems = error instanceof ConfigurationError ? error.problems : undefined;
    const document = { error: message.replace(/^error: /, ''), exit_code: exitCode, problems };
    write(stderr, JSON.stringify(document, undefined, 2));
  } else if (!(error instanceof CommanderError)) {
    // Commander has written its own message.
    // The color is not part of the text, which is escaped.
    stderr.write(`${prefix(io)} `);
    write(stderr, message);
  }
  return exitCode;
}

function exitCodeOf(error: unknown): number {
  // Help and version are not failures.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof ConfigurationError) return EXIT.configuration;
  return error instanceof CliError ? error.exitCode : EXIT.failed;
}

/** The io of the real process. */
export function processIo(): CliIo {
  return {
    env: process.env,
    cwd: process.cwd(),
    stdout: process.stdout,
    stderr: process.stderr,
    fetch: (input, init) => fetch(input, init),
    readStdin: () => text(process.stdin),
    untilStopped,
    programName: programName(process.env),
  };
}

/** In a clone there is no installed command: `npm run` starts it from the sources. npx sets the same variables. */
export function programName(env: Environment): string {
  const isClone = env['npm_package_name'] === 'tillgate-repository' && (env['npm_lifecycle_event'] ?? 'npx') !== 'npx';
  return isClone ? 'npm run -s tillgate --' : 'npx @tillgate/cli';
}

/** The first SIGTERM or SIGINT asks to stop; a second one ends the process immediately, with the signal's exit code. */
function untilStopped(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    function onSignal(this: void, signal: NodeJS.Signals, number: number): void {
      if (asked) process.exit(128 + number);
      asked = true;
      resolve(signal);
    }
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}
