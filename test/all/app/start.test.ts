import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { build } from 'esbuild';

const ROOT = join(__dirname, '../../..');
const FROM_SOURCES = ['--conditions=source', '-r', join(ROOT, 'scripts/run-sources.cjs')];

let clone: string;

beforeAll(async () => {
  clone = mkdtempSync(join(tmpdir(), 'tillgate-clone-'));
  cpSync(join(ROOT, 'openapi.yaml'), join(clone, 'openapi.yaml'));
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  await build({
    entryPoints: [join(ROOT, 'src/app/*.ts'), join(ROOT, 'src/app/commerce/*.ts')],
    outdir: join(clone, 'src/app/dist'),
    format: 'cjs',
    platform: 'node',
  });
});
afterAll(() => rmSync(clone, { recursive: true, force: true }));

/** Starts the scaffold and stops it when it listens, if it does. */
async function start(main: string, ...args: string[]): Promise<{ readonly code: unknown; readonly output: string }> {
  const env = {
    ...process.env,
    TILLGATE_AUTH_URL: 'https://login.test',
    TILLGATE_PORT: '0',
    TILLGATE_LOG_LEVEL: 'info',
  };
  const child = spawn(process.execPath, [...FROM_SOURCES, main, ...args], { cwd: clone, env });
  child.stderr.on('data', (line) => String(line).includes('the API listens') && child.kill());
  const ended = new Promise((resolve) => child.once('close', resolve));
  const [code, ...output] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code, output: output.join('') };
}

describe('main.js', () => {
  it('starts where a build of a clone has put it', async () => {
    const { code, output } = await start(join(clone, 'src/app/dist/main.js'));
    expect(output).toContain('the API listens');
    expect(code).toBe(0);
  });

  it('refuses the arguments of another command', async () => {
    const { code, output } = await start(join(ROOT, 'src/app/main.ts'), '--port', '3100');
    expect(output).toContain(
      'arguments: got "--port 3100", expected none; ports are TILLGATE_PORT and TILLGATE_AUTH_PORT',
    );
    expect(output).not.toContain('the API listens');
    expect(code).toBe(78);
  });
});
