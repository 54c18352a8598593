import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const root = resolve(__dirname, '../..');
const text = readFileSync(resolve(root, 'SECURITY.md'), 'utf8');
const attacks = readdirSync(resolve(__dirname, 'attacks')).filter((name) => name !== 'index.ts');

describe('SECURITY.md', () => {
  it('names only files that exist', () => {
    const named = [...text.matchAll(/`((?:src|test)\/[\w./-]+)`/g)].map(([, path = '']) => path);
    expect(named.length).toBeGreaterThan(30);
    expect(named.filter((path) => !existsSync(resolve(root, path)))).toEqual([]);
  });

  it('names every table of attacks, and no other', () => {
    const named = [...text.matchAll(/`([a-z-]+\.ts)`/g)].map(([, name = '']) => name);
    expect([...new Set(named)].sort()).toEqual(attacks.sort());
  });
});
