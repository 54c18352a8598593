import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import plan from './plan.json';

const ROOT = join(__dirname, '../..');
const suites = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.test.ts'),
);

describe('the plan of the mutation tests', () => {
  it('covers every layer that decides about a request or a token', () => {
    expect(Object.keys(plan.folders).sort()).toEqual([
      'src/auth-server',
      'src/dpop',
      'src/express',
      'src/gate',
      'src/generation',
      'src/rate-limit',
      'src/token',
    ]);
    expect(Object.keys(plan.folders).filter((folder) => !existsSync(join(ROOT, folder)))).toEqual([]);
  });

  it('names files that exist', () => {
    expect(
      Object.values(plan.only)
        .flat()
        .filter((path) => !existsSync(join(ROOT, path))),
    ).toEqual([]);
  });

  it('names suites that exist', () => {
    const named = [...Object.values(plan.folders).flat(), ...plan.leftOut];
    expect(named.filter((prefix) => !suites.some((suite) => suite.startsWith(prefix)))).toEqual([]);
  });
});
