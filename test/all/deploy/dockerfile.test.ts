import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DockerfileParser } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { dependencies, peerDependencies } from '../../../package.json';
import { APP_PACKAGES } from '../../../src/core/required-packages';
import { readSettings } from '../../../src/settings/settings';
import { startTillgate } from '../setup/tillgate';
import { freePort } from '../support/free-port';

const ROOT = join(__dirname, '../../..');
const TEXT = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8');
/** What .dockerignore gives to the build. */
const GIVEN = [...readFileSync(join(ROOT, 'deploy/Dockerfile.dockerignore'), 'utf8').matchAll(/^!(.*)$/gm)].map(
  ([, path = '']) => path,
);
const DOCKERFILE = DockerfileParser.parse(TEXT);
const INSTRUCTIONS = DOCKERFILE.getInstructions();
/** Those of the image itself: after the last FROM. */
const OF_IMAGE = INSTRUCTIONS.slice(INSTRUCTIONS.findLastIndex((one) => one.getKeyword() === 'FROM') + 1);
const ENV = Object.fromEntries(
  DOCKERFILE.getENVs().flatMap((env) => env.getProperties().map((one) => [one.getName(), one.getValue()])),
) as Record<string, string>;

/** The command of an instruction in exec form, without a shell; the last one of that keyword counts. */
function commandOf(keyword: string, instructions = OF_IMAGE): readonly string[] {
  const contents = instructions.filter((one) => one.getKeyword() === keyword).map((one) => one.getArgumentsContent());
  const [form = '[]'] = contents.flatMap((content) => /\[.*\]$/s.exec(content ?? '') ?? []).slice(-1);
  return JSON.parse(form) as string[];
}

function ofImage(keyword: string): readonly string[] {
  return OF_IMAGE.filter((one) => one.getKeyword() === keyword).map((one) => one.getArgumentsContent() ?? '');
}

const folder = mkdtempSync(join(tmpdir(), 'tillgate-image-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('deploy/Dockerfile', () => {
  it('has nothing that the linter warns about', () => {
    const problems = validate(TEXT).map(({ message, range }) => ({ message, line: range.start.line + 1 }));
    expect(problems).toEqual([]);
  });

  it('makes an image that runs as a numbered user that is not root, starts no shell and runs nothing more', () => {
    expect(ofImage('USER')).toEqual(['1000:1000']);
    expect(ofImage('RUN')).toEqual([]);
    expect(commandOf('ENTRYPOINT')).toEqual(['node', 'node_modules/tillgate/dist/cli/main.js']);
    expect(commandOf('CMD')).toEqual(['serve']);
    expect(commandOf('HEALTHCHECK').slice(0, 2)).toEqual(['node', '-e']);
  });

  it('sets variables that the scaffold knows, and exposes its ports', () => {
    const { port, adminPort } = readSettings(ENV);
    expect(ofImage('EXPOSE')).toEqual([`${port} ${adminPort}`]);
    expect(ofImage('VOLUME')).toEqual([ENV['TILLGATE_DATA_DIR']]);
  });

  it('copies files that exist and that .dockerignore does not hold back', () => {
    const sources = DOCKERFILE.getCOPYs()
      .filter((copy) => !copy.getFlags().some((flag) => flag.getName() === 'from'))
      .flatMap((copy) => copy.getArguments().slice(0, -1))
      .map((one) => one.getValue())
      .filter((source) => source !== '.');
    expect([...sources, ...GIVEN].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(sources.filter((path) => !GIVEN.includes(path.split('/')[0] ?? ''))).toEqual([]);
  });

  it('gives all files to the build that the compiler reads', async () => {
    for (const path of GIVEN) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const compiler = require.resolve('typescript/bin/tsc');
    const compiling = promisify(execFile)(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--noEmit'], {
      cwd: folder,
    });
    expect((await compiling).stdout).toBe('');
  });

  it('installs what the scaffold and every source needs', () => {
    writeFileSync(join(folder, 'package.json'), readFileSync(join(ROOT, 'package.json')));
    const [, ...args] = commandOf('RUN', INSTRUCTIONS);
    execFileSync(process.execPath, args, { cwd: folder });
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, object>;
    const installed = Object.keys(manifest['dependencies'] ?? {});
    const needed = [...APP_PACKAGES, 'redis', 'rate-limit-redis', 'pg', 'prom-client', '@opentelemetry/api'];
    expect(installed).toEqual(expect.arrayContaining([...Object.keys(dependencies), ...needed]));
    const left = Object.keys(peerDependencies).filter((name) => !installed.includes(name));
    expect(left).toEqual(['ioredis']);
    expect(manifest['devDependencies']).toBeUndefined();
  });

  it('has a health check that succeeds while the process runs, and only then', async () => {
    const [file = '', ...args] = commandOf('HEALTHCHECK');
    const env = { ...ENV, TILLGATE_ADMIN_PORT: String(await freePort()) };
    const check = (): Promise<number> =>
      new Promise((resolve) => {
        const child = execFile(file, args, { env: { PATH: process.env['PATH'], ...env } });
        child.once('exit', (code) => resolve(code ?? -1));
      });
    expect(await check()).toBe(1);
    const api = await startTillgate('serve', {
      TILLGATE_PORT: '0',
      TILLGATE_ADMIN_PORT: env.TILLGATE_ADMIN_PORT,
      TILLGATE_AUTH_URL: 'https://login.example.com',
    });
    expect(await check()).toBe(0);
    await api.stop();
    expect(await check()).toBe(1);
  });
});
