import type { Schedule } from './clock';

/**
 * Waits for `work` at most `limitMs`. Does not cancel `work`; a later rejection is ignored.
 *
 * @param timeoutError - makes the error for `work` that takes longer
 */
export function withTimeLimit<Value>(
  work: Promise<Value>,
  limitMs: number,
  schedule: Schedule,
  timeoutError: (limitMs: number) => Error,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = schedule(() => reject(timeoutError(limitMs)), limitMs);
    work.then(resolve, reject).finally(() => timer.cancel());
  });
}
