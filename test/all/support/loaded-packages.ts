import { execFileSync } from 'node:child_process';
import { join, relative } from 'node:path';
import { COMPILED } from './compiled';

/** The packages that a new process has loaded after running some code, which can require `./src/gate/index`; sorted. */
export function loadedPackages(code: string): readonly string[] {
  const names = loaded(code).flatMap((file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []);
  return [...new Set(names)].sort();
}

/** The files of ours that it has loaded, by their paths from `src/` on; sorted. */
export function loadedFiles(code: string): readonly string[] {
  const own = loaded(code).filter((file) => file.startsWith(join(COMPILED, 'src/')));
  return own.map((file) => relative(COMPILED, file)).sort();
}

function loaded(code: string): readonly string[] {
  const measured = `
    (async () => { ${code} })().then(() => {
      console.log(JSON.stringify(Object.keys(require.cache)));
      process.exit();
    });`;
  const printed = execFileSync(process.execPath, ['-e', measured], { cwd: COMPILED, encoding: 'utf8', stdio: 'pipe' });
  return JSON.parse(printed.trim().split('\n').at(-1) ?? '') as string[];
}
