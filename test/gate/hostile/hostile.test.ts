import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { CATEGORIES } from './attacks';
import type { Attack } from './support/attack';
import { runAttack } from './support/run-attacks';
import { openTarget } from './support/target';
import type { Target } from './support/target';

const ATTACKS = Object.values(CATEGORIES).flat();

describe('hostile input, against the running scaffold', () => {
  let target: Target;
  beforeAll(async () => {
    target = await openTarget();
  }, 300_000);
  afterAll(() => target.close());

  describe.each(Object.entries(CATEGORIES))('%s', (_category, attacks) => {
    it.each(attacks.map((attack) => [attack.name, attack] as const))('%s', (_name, attack) =>
      runAttack(attack, target),
    );
  });
});

describe('hostile input, against the scaffold in production: the same response to every bad token', () => {
  let target: Target;
  beforeAll(async () => {
    target = await openTarget(false);
  }, 300_000);
  afterAll(() => target.close());

  describe.each(Object.entries(CATEGORIES))('%s', (_category, attacks) => {
    it.each(oneOfEachCode(attacks).map((attack) => [attack.name, attack] as const))('%s', (_name, attack) =>
      runAttack(attack, target),
    );
  });
});

/** One row for each code in a category. */
function oneOfEachCode(attacks: readonly Attack[]): readonly Attack[] {
  return [...new Map(attacks.map((attack) => [attack.expected.code, attack])).values()];
}

describe('the table of attacks', () => {
  it('has at least 150 rows', () => {
    expect(ATTACKS.length).toBeGreaterThanOrEqual(150);
  });

  it('has unique names', () => {
    const names = ATTACKS.map(({ name }) => name);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it('has a source for each row', () => {
    expect(ATTACKS.filter(({ source }) => source.length < 3).map(({ name }) => name)).toEqual([]);
  });

  it('expects no 5xx in any row, and a 2xx only where a handler is named', () => {
    const wrong = ATTACKS.filter(
      ({ expected: { status = 400, reached } }) => status >= 500 || status < 300 !== !!reached,
    );
    expect(wrong.map(({ name }) => name)).toEqual([]);
  });
});

const root = resolve(__dirname, '../../..');
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
