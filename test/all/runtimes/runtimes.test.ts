import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { INSTALL_FLAGS } from '../package/consumer';
import { execute, npm } from '../package/npm';
import { COMPILED } from '../support/compiled';

/** By the package that has the program for this machine: packages named `bun` and `deno` fetch theirs by an install script. */
const RUNTIMES = [
  {
    name: 'Bun',
    of: { 'linux-x64': '@oven/bun-linux-x64', 'linux-arm64': '@oven/bun-linux-aarch64' },
    file: 'bin/bun',
    argv: [],
  },
  {
    name: 'Deno',
    of: { 'linux-x64': '@deno/linux-x64-glibc', 'linux-arm64': '@deno/linux-arm64-glibc' },
    file: 'deno',
    argv: ['run', '-A', '--quiet'],
  },
] as const;

const SCRIPT = join(__dirname, 'smoke.cjs');
const MACHINE = `${process.platform}-${process.arch}`;

/** Status, code, scheme of the challenge, and how often the handler has run. */
const EXPECTED = {
  accepted: [200, null, null, 1],
  known: [200, null, null, 2],
  withoutScope: [403, 'insufficient_scope', 'Bearer', 2],
  withoutToken: [401, 'missing_token', 'Bearer', 2],
  expired: [401, 'expired', 'Bearer', 2],
  unsigned: [401, 'malformed_token', 'Bearer', 2],
  foreignKey: [401, 'bad_signature', 'Bearer', 2],
  superseded: [401, 'superseded', 'Bearer', 2],
  renewed: [200, null, null, 3],
  fetches: 1,
};

/** The program, or why there is none here. */
async function install(name: string, wanted: string | undefined, file: string): Promise<{ program: string } | string> {
  if (wanted === undefined) return `no package has ${name} for ${MACHINE}`;
  const folder = join(process.env['RUN_FOLDER'] ?? '', `runtime-${name}`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  const { exitCode, errors } = await npm(folder, 'install', wanted, ...INSTALL_FLAGS);
  return exitCode === 0 ? { program: join(folder, 'node_modules', wanted, file) } : `npm has no ${wanted}: ${errors}`;
}

async function outcomes(program: string, argv: readonly string[]): Promise<unknown> {
  const folders = [join(COMPILED, 'src/gate'), join(COMPILED, 'src/testing')];
  const { output, errors } = await execute(COMPILED, program, [...argv, SCRIPT, ...folders]);
  if (output === '') throw new Error(errors);
  return JSON.parse(output);
}

it('tokens are accepted and refused on Node', async () => {
  expect(await outcomes(process.execPath, [])).toEqual(EXPECTED);
});

it.each(RUNTIMES)(
  'tokens are accepted and refused on $name as on Node',
  async ({ name, of, file, argv }) => {
    const installed = await install(name, of[MACHINE as keyof typeof of], file);
    if (typeof installed === 'string') return console.warn(`not run on ${name}: ${installed}`);
    expect(await outcomes(installed.program, argv)).toEqual(EXPECTED);
  },
  600_000,
);
