import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMPILED } from '../support/compiled';

const [MAIN, APP] = [join(COMPILED, 'src/cli/main.js'), join(COMPILED, 'src/app/main.js')];
const dataDir = mkdtempSync(join(tmpdir(), 'tillgate-process-'));
const started: ChildProcessWithoutNullStreams[] = [];
afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
  rmSync(dataDir, { recursive: true, force: true });
});

interface Child {
  readonly process: ChildProcessWithoutNullStreams;
  stdout(): string;
  stderr(): string;
}

/** A program in its own process. */
function start(argv: readonly string[], env: Record<string, string>): Child {
  return childOf(
    spawn(process.execPath, argv, { env: { PATH: process.env['PATH'], TILLGATE_DATA_DIR: dataDir, ...env } }),
  );
}

function childOf(child: ChildProcessWithoutNullStreams): Child {
  let [stdout, stderr] = ['', ''];
  started.push(child);
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return { process: child, stdout: () => stdout, stderr: () => stderr };
}

async function documentOf(child: Child): Promise<Record<string, string>> {
  while (!child.stdout().endsWith('}\n')) await once(child.process.stdout, 'data');
  return JSON.parse(child.stdout()) as Record<string, string>;
}

describe('the program', () => {
  it('reports every problem of its configuration and exits with 78', async () => {
    const child = start([APP], { TILLGATE_PORT: '99999', TILLGATE_ISUER: 'x' });
    const [exitCode] = (await once(child.process, 'close')) as [number];
    expect(exitCode).toBe(78);
    expect(child.stdout()).toBe('');
    expect(child.stderr().match(/TILLGATE_\w+:/g)).toEqual(['TILLGATE_ISUER:', 'TILLGATE_PORT:', 'TILLGATE_AUTH_URL:']);
  });

  it('starts both servers, and stops on SIGTERM without the deadline at which it cuts connections, although one is idle', async () => {
    const child = start([MAIN, 'dev', '--json', '--', process.execPath, APP], {
      TILLGATE_PORT: '0',
      TILLGATE_AUTH_PORT: '0',
      NODE_OPTIONS: `--require ${join(__dirname, 'no-deadlines.cjs')}`,
    });
    const report = await documentOf(child);
    while (!child.stderr().includes('the API listens')) await once(child.process.stderr, 'data');
    const agent = new Agent({ keepAlive: true });
    const status = await new Promise((settle, fail) => {
      get(`${report['base_url']}/v1/orders`, { agent }, (res) => {
        res.resume().on('end', () => settle(res.statusCode));
      }).on('error', fail);
    });

    child.process.kill('SIGTERM');
    const [exitCode] = (await once(child.process, 'close')) as [number];

    expect({ status, exitCode }).toEqual({ status: 401, exitCode: 0 });
    const [, ...requests] = child.stderr().trimEnd().split('\n');
    const refused = requests
      .map((line) => JSON.parse(line) as { status?: number })
      .filter(({ status }) => status === 401);
    expect(refused).toEqual([expect.objectContaining({ reason: 'missing_token' })]);
    agent.destroy();
  });
});
