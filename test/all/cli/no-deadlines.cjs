'use strict';
// Loaded into a process before its program: timers of 10 s and more never fire. A stop that needs its deadline then hangs.
const { setTimeout: wait } = globalThis;
const NEVER_MS = 2 ** 31 - 1;
globalThis.setTimeout = (task, ms, ...rest) => wait(task, ms >= 10_000 ? NEVER_MS : ms, ...rest);
