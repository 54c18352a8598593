import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as kitByName from '@tillgate/testing';
import * as gateByName from 'tillgate';
import * as generationsByName from 'tillgate/generations';
import ts from 'typescript';
import * as gateByPath from '../../src/gate/index';
import * as generationsByPath from '../../src/gate/generation/index';
import rooms from '../../src/rooms.json';
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

describe('src/rooms.json', () => {
  it('names a room after those that it imports, as they are built, packed and published', () => {
    const early = rooms.filter(({ imports: named }, at) =>
      named.some((room) => rooms.findIndex(({ folder }) => folder === room) >= at),
    );
    expect(early).toEqual([]);
  });

  it('publishes the rooms whose manifest is not private', () => {
    expect(rooms.filter(({ folder, isPublished }) => isPublished === (manifestOf(folder).private ?? false))).toEqual(
      [],
    );
  });

  it('is what the Dockerfile copies, manifests and builds', () => {
    const lines = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8').split('\n');
    const copied = (pattern: RegExp): string[] => lines.flatMap((line) => pattern.exec(line)?.[1] ?? []).sort();
    const folders = rooms.map(({ folder }) => folder).sort();
    expect(copied(/^COPY src\/(\w+)\/package\.json src\/\1\/$/)).toEqual(folders);
    expect(copied(/^COPY --from=build \/src\/src\/(\w+)\/dist src\/\1\/dist$/)).toEqual(folders);
  });

  it('is what typedoc.json documents, by every public entry', () => {
    const { entryPoints } = JSON.parse(readFileSync(join(ROOT, 'typedoc.json'), 'utf8')) as { entryPoints: string[] };
    const entries = rooms
      .filter(({ isPublished }) => isPublished)
      .flatMap(({ folder }) =>
        Object.entries(manifestOf(folder).exports ?? {}).flatMap(([name, entry]) =>
          typeof entry === 'string' || NOT_IN_THE_REFERENCE.includes(name) ? [] : [join('src', folder, entry.source)],
        ),
      );
    expect([...entryPoints].sort()).toEqual(entries.sort());
  });
});

/** The seam, and what the main entry of the testing kit documents. */
const NOT_IN_THE_REFERENCE = ['./internal', './jest', './vitest'];

interface Manifest {
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, string | { readonly source: string }>>;
}

function manifestOf(room: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'src', room, 'package.json'), 'utf8')) as Manifest;
}
