#!/usr/bin/env node
import { processIo, run } from './run';

void run(process.argv.slice(2), processIo()).then((exitCode) => {
  // A request that waits for its timeout must not keep the process alive.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(exitCode)));
});
