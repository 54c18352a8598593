import { CommanderError } from 'commander';
import { ConfigurationError } from '../core/configuration-error';
import { CliError, EXIT } from './exit';
import type { CliIo } from './io';
import { createProgram } from './program';

/**
 * Runs one command line and answers its exit code: 0 ok, 1 denied or failed, 2 usage, 78 configuration. Results go to
 * stdout, errors to stderr; nothing is thrown.
 *
 * @param argv - the arguments, without the interpreter and the script
 */
export async function run(argv: readonly string[], io: CliIo): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = createProgram(io, (code) => (exitCode = code));
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return exitCode;
  } catch (error) {
    return report(error, io);
  }
}

function report(error: unknown, { stderr }: CliIo): number {
  // Commander has written its message; help and version are no failures.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof ConfigurationError) {
    stderr.write(`tillgate: ${error.message}\n`);
    return EXIT.configuration;
  }
  stderr.write(`tillgate: ${error instanceof Error ? error.message : String(error)}\n`);
  return error instanceof CliError ? error.exitCode : EXIT.failed;
}
