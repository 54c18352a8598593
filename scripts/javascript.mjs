// Makes the JavaScript form of the project that `tillgate init` writes: `node scripts/javascript.mjs <from> <to>`. The same files as
// ECMAScript modules without types; packing does it.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format } from 'prettier';
import ts from 'typescript';

const NEEDS_TYPESCRIPT = /^(@types\/.*|ts-jest|tsx|typescript)$/;

export async function toJavaScript(from, to) {
  rmSync(to, { recursive: true, force: true });
  for (const name of readdirSync(from, { recursive: true, encoding: 'utf8' })) {
    const [source, target] = [join(from, name), join(to, name)];
    if (statSync(source).isDirectory() || name === 'tsconfig.json') continue;
    mkdirSync(dirname(target), { recursive: true });
    if (name.endsWith('.ts'))
      writeFileSync(target.replace(/\.ts$/, '.js'), await withoutTypes(readFileSync(source, 'utf8')));
    else if (name === 'package.json') writeFileSync(target, manifestOf(JSON.parse(readFileSync(source, 'utf8'))));
    else cpSync(source, target);
  }
}

/** Blank lines are marked, because the compiler removes them. */
async function withoutTypes(text) {
  const marked = text.replace(/\n(?=\n)/g, '\n//@blank');
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  const code = ts
    .transpileModule(marked, { compilerOptions })
    .outputText.replace(/^[ \t]*\/\/@blank$/gm, '')
    // Node finds no module without the end of its name.
    .replace(/(from '(?:\.[^']*|ajv\/dist\/2020))'/g, "$1.js'")
    .replace(/\b__dirname\b/g, 'import.meta.dirname');
  return format(code, { parser: 'babel', singleQuote: true, printWidth: 120 });
}

function manifestOf({ devDependencies, jest, scripts, ...members }) {
  const kept = Object.entries(devDependencies).filter(([name]) => !NEEDS_TYPESCRIPT.test(name));
  const manifest = {
    ...members,
    type: 'module',
    scripts: {
      dev: 'tillgate dev -- node --watch src/app/main.js',
      'token-server': scripts['token-server'],
      start: 'node --env-file=.env src/app/main.js',
      // Jest needs it for ECMAScript modules.
      test: 'node --experimental-vm-modules node_modules/jest/bin/jest.js',
    },
    jest: { ...jest, preset: undefined, transform: {}, testMatch: ['<rootDir>/test/**/*.test.js'] },
    devDependencies: Object.fromEntries(kept),
  };
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await toJavaScript(process.argv[2], process.argv[3]);
