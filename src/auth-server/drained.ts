import type { Response } from 'express';
import type { Schedule } from '../core/clock';

/** A reader that takes nothing for so long is dropped. */
const LONGEST_STALL_MS = 15_000;

/** Resolves when the reader of a long answer takes more, or is gone. */
export function drained(res: Response, schedule: Schedule): Promise<void> {
  return new Promise((resolve) => {
    const deadline = schedule(() => res.destroy(), LONGEST_STALL_MS);
    function done(): void {
      deadline.cancel();
      res.off('drain', done).off('close', done);
      resolve();
    }
    res.on('drain', done).on('close', done);
  });
}

/** Whether nothing can be written any more. */
export function isOver(res: Response): boolean {
  return res.destroyed || res.writableEnded;
}
