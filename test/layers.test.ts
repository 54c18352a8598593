import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import ts from 'typescript';

const SRC = resolve(__dirname, '../src');

/**
 * What each layer may import from:
 * `core <- token <- generation <- gate <- express <- index <- settings <- testing <- { app, auth-server, console } <- cli`.
 * `gate` reads the variables through `settings` when `authenticate()` has no options. `app` imports the gate through
 * `index`, as a user's code would.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  token: ['core'],
  settings: ['core', 'token'],
  generation: ['core', 'token'],
  possession: ['core', 'token', 'generation'],
  gate: ['core', 'settings', 'token', 'generation'],
  express: ['core', 'token', 'generation', 'gate'],
  index: ['core', 'token', 'gate', 'express'],
  app: ['index', 'testing', 'settings', 'core'],
  'auth-server': ['index', 'settings', 'generation', 'token', 'core'],
  console: ['index', 'testing', 'gate', 'token', 'core'],
  testing: ['index', 'express', 'generation', 'token', 'core'],
  cli: ['core', 'settings', 'token', 'index', 'app', 'auth-server', 'console', 'generation', 'testing'],
};

/** Packages that only these layers may import. */
const OWNED_PACKAGES: Readonly<Record<string, readonly string[]>> = {
  passport: ['express'],
  'passport-http-bearer': ['express'],
  'jwks-rsa': ['token'],
  express: ['app', 'auth-server', 'console', 'testing'],
  helmet: ['app', 'auth-server'],
  'express-rate-limit': ['app', 'auth-server'],
  commander: ['cli'],
  jest: [],
  '@jest/globals': [],
  supertest: [],
};

const MAX_LINES = 400;

interface Import {
  readonly from: string;
  readonly specifier: string;
}

const files = listFiles(SRC).map((path) => relative(SRC, path).split(sep).join('/'));
const imports = files.flatMap(importsOf);
const internal = imports.filter(({ specifier }) => specifier.startsWith('.')).map(resolveInternal);

describe('the house', () => {
  it('has files in every layer', () => {
    expect(new Set(files.map(layerOf))).toEqual(new Set(Object.keys(MAY_IMPORT)));
  });

  it('imports one way only, from layer to layer', () => {
    const wrong = internal.filter(({ from, to }) => {
      const [own, other] = [layerOf(from), layerOf(to)];
      return own !== other && !MAY_IMPORT[own]?.includes(other);
    });
    expect(wrong.map(({ from, to }) => `${from} -> ${to}`)).toEqual([]);
  });

  it('keeps each package in the layers that know it', () => {
    const wrong = imports.filter(({ from, specifier }) => {
      const owners = OWNED_PACKAGES[specifier];
      return owners !== undefined && !owners.includes(layerOf(from));
    });
    expect(wrong.map(({ from, specifier }) => `${from} -> ${specifier}`)).toEqual([]);
  });

  it('has no import cycle, type-only imports included', () => {
    expect(findCycle(internal)).toEqual([]);
  });

  it(`has no source or test file of more than ${MAX_LINES} lines`, () => {
    const paths = [...listFiles(SRC), ...listFiles(__dirname)];
    const long = paths.filter((path) => readFileSync(path, 'utf8').split('\n').length - 1 > MAX_LINES);
    expect(long.map((path) => relative(SRC, path))).toEqual([]);
  });

  it('has no import() outside the command line: a default Jest cannot run one, and the build keeps it', () => {
    expect(files.filter((file) => layerOf(file) !== 'cli' && hasImportCall(file))).toEqual([]);
  });

  it('exports by name only', () => {
    const withDefault = files.filter((file) => /^export default/m.test(readFileSync(join(SRC, file), 'utf8')));
    expect(withDefault).toEqual([]);
  });
});

function layerOf(file: string): string {
  return file === 'index.ts' ? 'index' : (file.split('/')[0] as string);
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return listFiles(path);
    return entry.name.endsWith('.ts') ? [path] : [];
  });
}

/** Every static, dynamic and type-only import, as the compiler sees it: text in comments and strings does not count. */
function importsOf(file: string): Import[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(SRC, file), 'utf8'), true, true);
  return importedFiles.map(({ fileName }) => ({ from: file, specifier: fileName }));
}

function hasImportCall(file: string): boolean {
  const text = readFileSync(join(SRC, file), 'utf8');
  const isImportCall = (node: ts.Node): boolean =>
    (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) ||
    ts.forEachChild(node, (child) => isImportCall(child) || undefined) === true;
  return /\bimport\s*\(/.test(text) && isImportCall(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
}

function resolveInternal({ from, specifier }: Import): { from: string; to: string } {
  const target = relative(SRC, resolve(SRC, dirname(from), specifier))
    .split(sep)
    .join('/');
  const to = [`${target}.ts`, target === '' ? 'index.ts' : `${target}/index.ts`].find((path) => files.includes(path));
  if (!to) throw new Error(`${from} imports ${specifier}, which is not a file of src`);
  return { from, to };
}

/** The files of one cycle in order, or nothing. */
function findCycle(edges: readonly { from: string; to: string }[]): string[] {
  const done = new Set<string>();
  function visit(file: string, path: readonly string[]): string[] {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    for (const { to } of edges.filter(({ from }) => from === file)) {
      const cycle = visit(to, [...path, file]);
      if (cycle.length > 0) return cycle;
    }
    done.add(file);
    return [];
  }
  for (const file of files) {
    const cycle = visit(file, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}
