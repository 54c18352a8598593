import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { ROOT } from './blocks';

/** What tools make, here or in a project, and what others publish. */
const MADE =
  /(^|\/)(node_modules|dist|build|coverage|docs-api|keycloak-[\d.]+|\.(git|test-build|packages|tillgate|api-report|corpus|stryker-tmp))(\/|$)/;

const folders = new Set<string>();
const files = new Set<string>();
for (const entry of readdirSync(ROOT, { withFileTypes: true })) {
  if (MADE.test(entry.name)) continue;
  if (!entry.isDirectory()) files.add(entry.name);
  else for (const path of [entry.name, ...below(entry.name)]) (extname(path) === '' ? folders : files).add(path);
}

function below(folder: string): readonly string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names.map((name) => `${folder}/${name.split(sep).join('/')}`).filter((path) => !MADE.test(path));
}

/** Every folder and file, with a slash before and after, so that a path can begin at any folder. */
const EXISTING = [...folders, ...files].map((path) => `/${path}/`);
const TOP = [...folders].filter((path) => !path.includes('/'));
const ROOMS = [...folders].filter((path) => /^src\/[^/]+$/.test(path)).map((path) => path.slice('src/'.length));

/** What begins like a folder of this repository, or ends like a file. Neither `./gate.mjs`, which is a user's, nor a URL. */
const BEGINS = `(?:${[...TOP, ...ROOMS].map((name) => name.replace('.', '\\.')).join('|')})(?:/[\\w.*-]+)+`;
const ENDS = '[\\w*-][\\w.*-]*(?:/[\\w.*-]+)+\\.(?:[cm]?[jt]s|md|json|ya?ml|sh|html|css|py|sql)\\b';
const MENTIONED = new RegExp(`(?<![\\w./@:$}>*-])(?:${BEGINS}|${ENDS})`, 'g');

/** Pages as they are, of code the comments. */
function textOf(path: string): string {
  const text = readFileSync(join(ROOT, path), 'utf8');
  if (path.endsWith('.md')) return text;
  const isScript = /\.(ya?ml|sh|py)$|Dockerfile$/.test(path);
  return (text.match(isScript ? /(?<=^|\s)#.*$/gm : /\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm) ?? []).join('\n');
}

function exists(path: string): boolean {
  if (MADE.test(path)) return true;
  // A project that `tillgate init` writes has the folders of src/app and test/app.
  const candidates = [path, path.replace(/^(src|test)\//, '$1/app/')];
  return candidates.some((one) => {
    const isFromTop = TOP.includes(one.split('/')[0] as string);
    const glob = one.replace(/[.]/g, '\\.').replace(/\*+\/?/g, '.*');
    const pattern = new RegExp(`${isFromTop ? '^' : ''}/${glob}/`);
    return EXISTING.some((known) => pattern.test(known));
  });
}

it.each([
  ['src/gate/token/jws.ts', true],
  ['token/keys', true],
  ['test/all/contract/bugs*.ts', true],
  ['src/gate/verifier/**/*.ts', true],
  ['src/main.ts', true],
  ['src/gate/token/algorithms.ts', false],
  ['gate/tokens', false],
  ['token/jws', false],
])('whether %s exists: %s', (path, expected) => {
  expect(exists(path)).toBe(expected);
});

it('every page and every comment names paths that exist', () => {
  const read = [...files].filter((path) => /\.(md|[cm]?[jt]s|ya?ml|sh|py)$|Dockerfile$/.test(path));
  const mentioned = read.flatMap((path) =>
    [...textOf(path).matchAll(MENTIONED)].map(([found]) => [path, found.replace(/\.$/, '')] as const),
  );
  expect(mentioned.length).toBeGreaterThan(400);
  expect(mentioned.filter(([, found]) => !exists(found))).toEqual([]);
});
