import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Settings } from '../../../src/gate/env';
import { VARIABLES } from '../../../src/gate/env/variables';
import type { ValuesOf } from '../../../src/gate/core/options';
import type { GATE_OPTIONS, ISSUER_OPTIONS } from '../../../src/gate/verifier/read-options';
import { listFiles } from '../../repository/sources';

const GATE = join(__dirname, '../../../src/gate');
const FILES = listFiles(GATE).map((path) => ({ name: relative(GATE, path), text: readFileSync(path, 'utf8') }));
const NAMES = VARIABLES.flatMap(({ name, isSecret }): string[] => (isSecret ? [name, `${name}_FILE`] : [name]));

type Values = ValuesOf<typeof ISSUER_OPTIONS> & Pick<ValuesOf<typeof GATE_OPTIONS>, 'allowHttp'>;
/** The other settings of the gate have a type that a variable can write. */
type Same = Exclude<keyof Settings & keyof Values, 'audience' | 'generationSource' | 'issuer' | 'opaque' | 'scopes'>;
type IsEqual<A, B> = [A, B] extends [B, A] ? true : false;

describe('the table of variables', () => {
  it('has every variable that a text or a comment of the gate names', () => {
    const named = FILES.flatMap(({ name, text }) =>
      [...text.matchAll(/\bTILLGATE_[A-Z_]*[A-Z]\b/g)].map(([variable]) => `${name}: ${variable}`),
    );
    expect(named.length).toBeGreaterThan(VARIABLES.length);
    expect(named.filter((one) => !NAMES.includes(one.replace(/^.*: /, '')))).toEqual([]);
  });

  it('is the only place that reads one: no other folder has a name of its own', () => {
    const others = FILES.filter(({ name, text }) => !name.startsWith('env') && /['"`]TILLGATE_\w+['"`]/.test(text));
    // Comments and texts put names between backticks.
    const literal = others.filter(({ text }) => /(?<![\w`])['"]TILLGATE_[A-Z_]+['"]/.test(text));
    expect(literal.map(({ name }) => name)).toEqual([]);
  });

  it('agrees with the comments of the settings, which name each variable and its default', () => {
    const source = readFileSync(join(GATE, 'env/settings.ts'), 'utf8');
    const comments = new Map(
      [...source.matchAll(/\/\*\* (.*) \*\/\n {2}readonly (\w+): /g)].map(([, text, of]) => [of, text]),
    );
    const wrong = VARIABLES.filter(({ name, sets, fallback }) => {
      const comment = comments.get(sets.replace(/\..*/, '')) ?? '';
      const shown = 'text' in fallback ? `Default ${fallback.text.replace('off', 'false')}` : '';
      const isNamed = comment.includes(`\`${name}\``) || name.startsWith(/`(\w+)\*`/.exec(comment)?.[1] ?? ' ');
      return !isNamed || !comment.replaceAll('`', '').includes(shown);
    });
    expect(wrong.map(({ name }) => name)).toEqual([]);
  });

  it('sets settings of the types of their options', () => {
    const isEqual: IsEqual<Pick<Settings, Same>, Pick<Values, Same>> = true;
    expect(isEqual).toBe(true);
  });
});
