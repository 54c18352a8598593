#!/usr/bin/env node
import { processIo } from './io';
import { run } from './run';

void run(process.argv.slice(2), processIo()).then((exitCode) => {
  process.exitCode = exitCode;
});
