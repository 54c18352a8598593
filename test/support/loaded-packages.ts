import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';

const ROOT = resolve(__dirname, '../..');

/** The packages that a new process has loaded after running some code, sorted. */
export function loadedPackages(code: string): readonly string[] {
  const measured = `
    require('esbuild-register/dist/node').register();
    const before = new Set(Object.keys(require.cache));
    (async () => { ${code} })().then(() => {
      const files = Object.keys(require.cache).filter((file) => !before.has(file));
      const names = files.flatMap((file) => /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(file)?.[1] ?? []);
      console.log(JSON.stringify([...new Set(names)].sort()));
      process.exit();
    });`;
  const printed = execFileSync(process.execPath, ['-e', measured], { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' });
  return JSON.parse(printed.trim().split('\n').at(-1) ?? '') as string[];
}
