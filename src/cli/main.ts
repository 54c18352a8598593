#!/usr/bin/env node
import { processIo, run } from './run';

void run(process.argv.slice(2), processIo()).then((exitCode) => {
  // A module of `--app` may keep the process alive: a server that listens, a pool of connections.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(exitCode)));
});
