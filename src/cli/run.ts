import { Command, CommanderError } from 'commander';
import { ConfigurationError } from '../core/configuration-error';
import { ownManifest, requirePackages } from '../core/required-packages';
import type { Environment } from '../settings/settings';
import { CliError, EXIT, write } from './command';
import type { CliIo, CommandEntry, CommandOptions } from './command';
import { COMMANDS } from './command-table';
import { withProgress } from './progress';

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
    .version(ownManifest()?.version ?? 'unknown')
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      // As JSON it is written once, by report().
      writeErr: (text) => void (json || io.stderr.write(text)),
    })
    .exitOverride();

  function add(
    parent: Command,
    { usage, about, options: declared = [], needs = [], run: runCommand }: CommandEntry,
  ): void {
    const command = parent.command(usage).description(about).option('--json', 'print one JSON document');
    for (const [flags, text] of declared) command.option(flags, text);
    command.action(async () => {
      requirePackages(`tillgate ${command.name()}`, needs);
      const options = command.opts<CommandOptions>();
      // Under --watch another process does the work.
      const progress = options.watch ? { io, stop() {} } : withProgress(io, `${nameOf(parent)} ${command.name()}`);
      try {
        finish(await runCommand({ io: progress.io, json }, options, ...command.args));
      } finally {
        progress.stop();
      }
    });
  }

  for (const entry of COMMANDS) {
    if (!('commands' in entry)) {
      add(program, entry);
      continue;
    }
    const group = program.command(entry.name).description(entry.about);
    for (const command of entry.commands) add(group, command);
  }
  return program;
}

/** `tillgate`, or `tillgate clients`. */
function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();
}

function report(error: unknown, { stderr }: CliIo, json: boolean): number {
  const exitCode = exitCodeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  if (json && exitCode !== EXIT.ok) {
    const problems = error instanceof ConfigurationError ? error.problems : undefined;
    write(
      stderr,
      JSON.stringify({ error: message.replace(/^error: /, ''), exit_code: exitCode, problems }, undefined, 2),
    );
  } else if (!(error instanceof CommanderError)) {
    // Commander has written its own message.
    write(stderr, `tillgate: ${message}`);
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
    stdout: process.stdout,
    stderr: process.stderr,
    fetch: (input, init) => fetch(input, init),
    readStdin,
    untilStopped,
    programName: programName(process.env),
  };
}

/** In a clone there is no installed command: `npm run` starts it from the sources. npx sets the same variables. */
export function programName(env: Environment): string {
  const isClone = env['npm_package_name'] === 'tillgate' && (env['npm_lifecycle_event'] ?? 'npx') !== 'npx';
  return isClone ? 'npm run -s tillgate --' : 'npx tillgate';
}

async function readStdin(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) text += String(chunk);
  return text;
}

/** The first SIGTERM or SIGINT asks to stop; a second one ends the process immediately, with the signal's exit code. */
function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    function onSignal(this: void, _signal: NodeJS.Signals, number: number): void {
      if (asked) process.exit(128 + number);
      asked = true;
      resolve();
    }
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}
