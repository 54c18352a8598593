import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { collect } from '../setup/process';
import { eventually } from '../support/eventually';
import { freePort } from '../support/free-port';
import { install } from './consumer';
import { execute, node } from './npm';
import { COMMAND, packTillgate } from './tarball';

const ROOT = join(__dirname, '../../..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

/** The blocks of commands of README.md: two for the scaffold, then one in the clone and one in the app. */
const [SCAFFOLD = [], APP = []] = [...README.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) =>
  block.trim().split('\n'),
);

let home: string;
let clone: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tillgate-first-'));
  clone = join(home, 'tillgate');
  // Like a clone of the last commit, with what has changed since.
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT });
  await mkdir(clone);
  execFileSync('sh', ['-c', `tar --null --ignore-failed-read -T - -cf - | tar -xf - -C '${clone}'`], {
    cwd: ROOT,
    input: files,
  });
});
afterAll(() => rm(home, { recursive: true, force: true }));

const sh = (cwd: string, line = '') => execute(cwd, 'sh', ['-c', line]);

it('the README has two commands for the scaffold and two for an app', () => {
  expect(SCAFFOLD).toEqual(['npm ci', 'npm run dev']);
  expect(APP).toEqual(['npm run pack', expect.stringMatching(/^npm install \S+\.tgz express$/)]);
});

it('npm ci installs in a clone', async () => {
  expect(await sh(clone, SCAFFOLD[0])).toMatchObject({ exitCode: 0 });
}, 600_000);

it('npm run dev starts the scaffold in a clone', async () => {
  const [port, authPort] = [await freePort(), await freePort()];
  const outer = Object.entries(process.env).filter(([name]) => !/^(TILLGATE_|NODE_|JEST_|npm_)/.test(name));
  const env = { ...Object.fromEntries(outer), TILLGATE_PORT: `${port}`, TILLGATE_AUTH_PORT: `${authPort}` };
  // A terminal signals the whole group: npm alone would leave the servers behind.
  const child = spawn('sh', ['-c', SCAFFOLD[1] ?? ''], {
    cwd: clone,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = once(child, 'close');
  const errors = collect(child.stderr);
  try {
    const status = await eventually(
      'the scaffold',
      () =>
        fetch(`http://127.0.0.1:${port}/v1/orders`).then(
          ({ status }) => status,
          () => false as const,
        ),
      60_000,
    );
    expect({ status, errors: errors().includes('Error') }).toEqual({ status: 401, errors: false });
  } finally {
    process.kill(-(child.pid ?? NaN), 'SIGINT');
    await closed;
  }
}, 400_000);

it('the next two pack the gate in the clone, and install it in an app that requires a token', async () => {
  expect(await sh(clone, APP[0])).toMatchObject({ exitCode: 0 });
  const app = join(home, 'app');
  await mkdir(app);
  await writeFile(join(app, 'package.json'), '{}');
  expect(await sh(app, APP[1])).toMatchObject({ exitCode: 0 });
  const script = `
    const { authenticate } = require('tillgate');
    const server = require('express')().use(authenticate({ issuer: 'https://login.example.com', audience: 'a', logger: false })).listen(0, async () => {
      console.log((await fetch('http://127.0.0.1:' + server.address().port)).status);
      process.exit();
    });`;
  expect(await node(app, '-e', script)).toMatchObject({ exitCode: 0, output: '401\n' });
}, 400_000);

describe('the packages, in an empty folder', () => {
  it('have check as npx @tillgate/cli, which asks no token server that nobody named', async () => {
    const folder = await mkdtemp(join(home, 'command-'));
    await writeFile(join(folder, 'package.json'), '{}');
    expect(await install(folder, await packTillgate(...COMMAND))).toMatchObject({ exitCode: 0 });
    const { exitCode, output } = await sh(folder, 'npx --offline @tillgate/cli check');
    expect({ exitCode, output }).toEqual({
      exitCode: 78,
      output: expect.stringContaining('TILLGATE_AUTH_URL: not set'),
    });
    expect(output).not.toMatch(/^ok/m);
  }, 400_000);

  it('have no text in the gate that makes anybody run npx', async () => {
    const folder = await mkdtemp(join(home, 'gate-'));
    await writeFile(join(folder, 'package.json'), '{}');
    expect(await install(folder, await packTillgate('gate'))).toMatchObject({ exitCode: 0 });
    const dist = join(folder, 'node_modules/tillgate/dist');
    const scripts = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
    expect(scripts.length).toBeGreaterThan(20);
    expect(scripts.filter((name) => /\bnpx\b/.test(readFileSync(join(dist, name), 'utf8')))).toEqual([]);
  }, 400_000);
});
