import { statSync } from 'node:fs';

/** Asserts that only the owner can use a file or a directory. Windows has no permission bits, so there it says that it does not. */
export function expectPrivate(path: string, mode: 0o600 | 0o700 = 0o600): void {
  if (process.platform === 'win32') {
    console.warn(`not checked: the permission bits of ${path}, because Windows has none`);
    return;
  }
  expect(statSync(path).mode & 0o777).toBe(mode);
}
