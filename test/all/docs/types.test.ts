import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { blocksOf, PAGES_WITH_CODE, programOf, ROOT } from '../../repository/docs/blocks';
import { listFiles } from '../../repository/sources';

const folder = mkdtempSync(join(tmpdir(), 'tillgate-docs-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What the examples import from the reader's own project. */
const MODULES = {
  'globals.d.ts': 'declare const response: unknown;\n',
  // src/gate has the little of passport that it uses itself.
  'passport.d.ts': `declare module 'passport' {
  class Strategy {
    authenticate(req: unknown): void;
    success(user: object): void;
    fail(challenge: unknown, status: number): void;
    error(error: unknown): void;
  }
  const passport: {
    Strategy: typeof Strategy;
    use(strategy: Strategy): void;
    authenticate(name: string, options: object): import('express').RequestHandler;
  };
  export default passport;
}
`,
  'app.ts':
    "import type { Express } from 'express';\nexport declare const app: Express;\nexport declare function makeApp(options: object): Express;\n",
  'comments/app.ts': "export { makeApp } from '../app';\n",
  'comments/room/old-middleware.ts':
    "import type { RequestHandler } from 'express';\nexport declare const checkToken: RequestHandler;\n",
  'pages/handlers.ts':
    "import type { RequestHandler } from 'express';\nexport declare const listOrders: RequestHandler, listReports: RequestHandler, listStores: RequestHandler;\n",
};

const TSCONFIG = {
  extends: join(ROOT, 'tsconfig.json'),
  compilerOptions: {
    module: 'esnext',
    moduleResolution: 'bundler',
    noUnusedLocals: false,
    noUnusedParameters: false,
    typeRoots: [join(ROOT, 'node_modules/@types')],
    paths: {
      'express-oauth2-jwt-bearer': [join(ROOT, 'test/support/express-oauth2-jwt-bearer.d.ts')],
      tillgate: [join(ROOT, 'src/gate/index.ts')],
      'tillgate/generations': [join(ROOT, 'src/gate/generation/index.ts')],
      '@tillgate/client': [join(ROOT, 'src/client/index.ts')],
      'tillgate/*': [join(ROOT, 'src/*/index.ts')],
    },
  },
  include: ['pages', 'comments', 'globals.d.ts', 'passport.d.ts', join(ROOT, 'src/gate/express/passport.d.ts')],
};

/** What packages say about their exports. The scaffold is no package. */
const COMMENTED = ['gate', 'stores', 'client', 'testing', 'cli'].flatMap((room) => listFiles(join(ROOT, 'src', room)));

/** The examples in the comments of a file. */
function examplesIn(file: string): readonly string[] {
  const found = readFileSync(file, 'utf8').matchAll(/^ *\* ```ts\n((?: *\*.*\n)*?) *\* ```/gm);
  return [...found].map(([, lines = '']) => `${lines.replace(/^ *\* ?/gm, '')}\nexport {};\n`);
}

it('the examples of README.md, of docs/ and of comments compile, as TypeScript in the strict mode', () => {
  mkdirSync(join(folder, 'pages'));
  mkdirSync(join(folder, 'comments/room'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  for (const [name, text] of Object.entries(MODULES)) writeFileSync(join(folder, name), text);
  for (const page of PAGES_WITH_CODE) {
    const { imports, body } = programOf(blocksOf(page).filter(({ mode }) => mode !== 'sketch'));
    writeFileSync(join(folder, 'pages', `${page.replace(/\W/g, '-')}.ts`), `${imports.join('')}\n${body}`);
  }
  const examples = COMMENTED.flatMap(examplesIn);
  expect(examples.length).toBeGreaterThan(35);
  for (const [index, text] of examples.entries()) writeFileSync(join(folder, `comments/room/${index}.ts`), text);
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8', cwd: folder });
  expect(stdout).toBe('');
});
