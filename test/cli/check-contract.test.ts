import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { contractFinding } from '../../src/cli/commands/check';
import { newDataDir } from './data-dir';

/** The contract of the package, changed. */
function changed(change: (text: string) => string): string {
  const file = join(newDataDir(), 'openapi.yaml');
  writeFileSync(file, change(readFileSync(join(__dirname, '../../openapi.yaml'), 'utf8')));
  return file;
}

it.each<[string, (text: string) => string, RegExp]>([
  ['another scope', (text) => text.replace('[orders:cancel]', '[orders:write]'), /orders\/\{id\}\/cancel.*orders:/],
  ['a missing route', (text) => text.replace('/orders/{id}/cancel:', '/orders/{id}/cancelled:'), /cancel/],
])('check names the fix for %s in openapi.yaml', (_what, change, detail) => {
  expect(contractFinding(changed(change))).toEqual({
    check: 'contract',
    ok: false,
    detail: expect.stringMatching(detail),
    fix: 'change openapi.yaml or the table of resources until both agree',
  });
});
