import { memoryGenerations } from '../../src/gate/generation';
import type { Change, GenerationSource } from '../../src/gate/generation';
import type { FakeTime } from './fake-time';
import { NOW_MS } from './issuer';

/** A log of these changes, whose reads fail while the test says so. */
export function sourceOf(
  changes: readonly Change[] = [],
  health = { down: false },
  time: Partial<Pick<FakeTime, 'clock' | 'schedule'>> = { clock: () => NOW_MS },
): GenerationSource {
  const log = memoryGenerations({ clock: time.clock, schedule: time.schedule });
  void log.append(changes);
  return {
    mark: false,
    reader() {
      const reader = log.reader();
      const next = (waitMs: number) => (health.down ? Promise.reject(new Error('down')) : reader.next(waitMs));
      return { next, close: () => reader.close() };
    },
  };
}
