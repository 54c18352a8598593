/*
 * How code of others is called: callbacks, loggers, sources and stores. It may throw, reject, or return a promise where none
 * is expected, and in a timer or an event nothing would catch that: the process would end.
 */

/** Whether `await` would wait for a value. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** Calls what nothing waits for. A throw and a rejection go to `failed`, and no further. */
export function notify(call: () => unknown, failed: (error: unknown) => void): void {
  function fail(error: unknown): void {
    try {
      failed(error);
    } catch {
      // What was thrown can be made so that reading it throws.
    }
  }
  try {
    const result = call();
    if (isThenable(result)) Promise.resolve(result).then(undefined, fail);
  } catch (error) {
    fail(error);
  }
}

/** Calls what may return a promise: rejects where it throws. */
export async function ask<Value>(call: () => Value | PromiseLike<Value>): Promise<Value> {
  return call();
}

/** Calls what must return a value now: the rejection of a promise in its place is ignored. */
export function valueOf<Value>(call: () => Value): Value {
  const value = call();
  if (isThenable(value)) Promise.resolve(value).then(undefined, () => undefined);
  return value;
}
