import { execFileSync } from 'node:child_process';
import { COMPILED } from './compiled';

/** The packages that a new process has loaded after running some code, which can require `./src/gate/index`; sorted. */
export function loadedPackages(code: string): readonly string[] {
  const measured = `
    (async () => { ${code} })().then(() => {
      const names = Object.keys(require.cache).flatMap((file) => /.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(file)?.[1] ?? []);
      console.log(JSON.stringify([...new Set(names)].sort()));
      process.exit();
    });`;
  const printed = execFileSync(process.execPath, ['-e', measured], { cwd: COMPILED, encoding: 'utf8', stdio: 'pipe' });
  return JSON.parse(printed.trim().split('\n').at(-1) ?? '') as string[];
}
