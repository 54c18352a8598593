import { join } from 'node:path';
import * as kitByName from '@tillgate/testing';
import * as gateByName from 'tillgate';
import * as generationsByName from 'tillgate/generations';
import ts from 'typescript';
import * as gateByPath from '../../src/gate/index';
import * as generationsByPath from '../../src/gate/generation/index';
import * as kitByPath from '../../src/testing/index';

const ROOT = join(__dirname, '../..');

describe('the rooms during development', () => {
  it('are one copy of each module, by name and by path: guards trust no gate of another copy', () => {
    expect(gateByName.authenticate).toBe(gateByPath.authenticate);
    expect(generationsByName.memoryGenerations).toBe(generationsByPath.memoryGenerations);
    expect(kitByName.createTestIssuer).toBe(kitByPath.createTestIssuer);
  });

  it.each([
    ['tillgate', 'src/gate/index.ts'],
    ['tillgate/env', 'src/gate/env/index.ts'],
    ['tillgate/internal', 'src/gate/internal.ts'],
    ['@tillgate/testing/jest', 'src/testing/jest.ts'],
  ])('lead an editor from %s to its source', (specifier, file) => {
    const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as {
      config: { compilerOptions: object };
    };
    const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
    const from = join(ROOT, 'src/cli/main.ts');
    const { resolvedModule } = ts.resolveModuleName(specifier, from, options, ts.sys);
    expect(resolvedModule?.resolvedFileName).toBe(join(ROOT, file));
  });
});
