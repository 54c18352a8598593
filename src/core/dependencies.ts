import { systemClock, systemSchedule } from './clock';
import type { Clock, Schedule } from './clock';
import type { Logger } from './logger';
import { option } from './options';
import type { TableOf } from './options';

/** What a factory takes from its environment: tests replace it, and so does an app with its own logger or a proxy. */
export interface Dependencies {
  /**
   * Where refusals (each as `info`), warnings and errors go; a logger of pino fits. Default: the console, where refusals are
   * counted: one line per reason and client, then at most one a minute.
   */
  readonly logger?: Logger | undefined;
  /** Returns the time in ms since the epoch. Default: `Date.now`. */
  readonly clock?: (() => number) | undefined;
  /**
   * Calls `task` once after `delayMs`, unless it is cancelled before. Default: `setTimeout`, with timers that do not keep
   * the process alive.
   */
  readonly schedule?: ((task: () => void, delayMs: number) => { cancel(): void }) | undefined;
  /** Fetches metadata, key sets and generations; replace it for a proxy or mutual TLS. Default: the global `fetch`. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** Returns a number in [0, 1), which spreads refreshes and retries. Default: `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** The rows of {@link Dependencies}. */
export const DEPENDENCIES = {
  logger: option.logger(),
  clock: option.callable<Clock>(systemClock),
  schedule: option.callable<Schedule>(systemSchedule),
  fetch: option.callable<NonNullable<Dependencies['fetch']>>((url, init) => fetch(url, init)),
  random: option.callable<() => number>(Math.random),
} satisfies TableOf<Dependencies>;
