import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The clock of a process and its children, by libfaketime: it can be set while they run. Timers go on as they were. */
export interface FakeClock {
  /** Variables of the process. */
  readonly env: Readonly<Record<string, string>>;
  /** Puts the clock `aheadMs` ahead of the machine's; 0: right again. */
  set(aheadMs: number): void;
  remove(): void;
}

const DEBIAN = '/usr/lib';

/** @throws Error saying what to install when there is no libfaketime */
export function fakeClock(): FakeClock {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-clock-'));
  const file = join(folder, 'offset');
  // A database server reads it as another user.
  chmodSync(folder, 0o755);
  const set = (aheadMs: number): void => writeFileSync(file, `${aheadMs < 0 ? '-' : '+'}${Math.abs(aheadMs) / 1000}\n`);
  set(0);
  return {
    env: {
      LD_PRELOAD: libfaketime(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
    set,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function libfaketime(): string {
  for (const folder of readdirSync(DEBIAN)) {
    const path = join(DEBIAN, folder, 'faketime');
    try {
      if (readdirSync(path).includes('libfaketime.so.1')) return join(path, 'libfaketime.so.1');
    } catch {
      // Another folder has it.
    }
  }
  throw new Error('these tests set the clocks of processes: apt-get install faketime');
}
