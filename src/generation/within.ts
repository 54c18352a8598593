import type { Schedule } from '../core/clock';
import { SourceError } from './source-error';

/**
 * Waits for `work` at most `timeoutMs`. The work itself goes on; what becomes of it later is nobody's failure any more.
 *
 * @throws SourceError when the time is over first.
 */
export function within<Value>(work: Promise<Value>, timeoutMs: number, schedule: Schedule): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = schedule(() => reject(new SourceError(`no answer within ${timeoutMs} ms`)), timeoutMs);
    work.then(resolve, reject).finally(() => timer.cancel());
  });
}
