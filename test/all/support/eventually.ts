/** Longest time for anything that a real server is waited for, in ms. */
const PATIENCE_MS = 150_000;
const PAUSE_MS = 10;

/**
 * Asks until the result is neither `undefined` nor `false`, and returns it. For real servers only: everything else runs
 * on fake time.
 *
 * @throws Error naming `what` when the time is over.
 */
export async function eventually<Value>(
  what: string,
  ask: () => Value | Promise<Value>,
  patienceMs = PATIENCE_MS,
): Promise<Exclude<Value, undefined | false>> {
  const untilMs = performance.now() + patienceMs;
  while (performance.now() < untilMs) {
    const result = await ask();
    if (result !== undefined && result !== false) return result as Exclude<Value, undefined | false>;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  throw new Error(`waited ${patienceMs} ms in vain: ${what}`);
}
