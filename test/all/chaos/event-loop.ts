/** How often a process looks at its event loop, in ms. */
const EVERY_MS = 500;
/** A timer that is later than this finds a process that gets no time of the machine. */
const LATE_MS = 250;

/** Calls `tell` every 500 ms, with the ms for which this process could not run since the call before. */
export function watchEventLoop(tell: (starvedMs: number) => void): void {
  let beforeMs = performance.now();
  setInterval(() => {
    const nowMs = performance.now();
    const lateMs = nowMs - beforeMs - EVERY_MS;
    beforeMs = nowMs;
    tell(lateMs > LATE_MS ? lateMs : 0);
  }, EVERY_MS);
}
