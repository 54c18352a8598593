/*
 * How foreign code is called: callbacks, loggers, sources and stores. It may throw, reject, or return a promise where
 * none is expected, and in a timer or an event nothing would catch that: the process would end.
 */

/** Whether `await` would wait for a value. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** Calls a function that nothing waits for. Errors and rejections go to `failed` only. */
export function callUnwaited(call: () => unknown, failed: (error: unknown) => void): void {
  function fail(error: unknown): void {
    try {
      failed(error);
    } catch {
      // Reading a thrown value can itself throw.
    }
  }
  try {
    const result = call();
    if (isThenable(result)) Promise.resolve(result).then(undefined, fail);
  } catch (error) {
    fail(error);
  }
}

/** Calls a function that may return a promise; a throw becomes a rejection. */
export async function called<Value>(call: () => Value | PromiseLike<Value>): Promise<Value> {
  return call();
}

/** Calls a function that must return a value now; if it returns a promise, its rejection is ignored. */
export function callNow<Value>(call: () => Value): Value {
  const value = call();
  if (isThenable(value)) Promise.resolve(value).then(undefined, () => undefined);
  return value;
}
