import { Command } from 'commander';
import { ownManifest, requirePackages } from '../core/required-packages';
import type { CommandEntry, CommandOptions } from './command';
import { COMMANDS } from './command-table';
import type { CliIo } from './io';

/** Builds the command line from the table; `finish` is told the exit code of the command that ran. */
export function createProgram(io: CliIo, finish: (exitCode: number) => void): Command {
  const program = new Command('tillgate')
    .description('The gate in front of a commerce REST API: servers, tokens, client credentials.')
    .version(ownManifest()?.version ?? 'unknown')
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: (text) => io.stderr.write(text) })
    .exitOverride();

  function add(parent: Command, { usage, about, options = [], needs = [], run }: CommandEntry): void {
    const command = parent.command(usage).description(about).option('--json', 'answer with one JSON document');
    for (const [flags, text] of options) command.option(flags, text);
    command.action(async () => {
      requirePackages(`tillgate ${command.name()}`, needs);
      const given = command.opts<CommandOptions>();
      finish(await run({ io, json: given.json ?? false }, given, ...command.args));
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
