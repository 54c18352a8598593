import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median, table } from '../stats';

const ROOT = join(__dirname, '../..');
const BUILT = [process.execPath, join(ROOT, 'dist/cli/main.js')];

/** One start: until it says that it listens, in ms. */
interface Start {
  readonly wallMs: number;
  readonly cpuMs: number;
}

interface Running {
  readonly report: Readonly<Record<string, string>>;
  readonly start: Start;
  stop(): Promise<void>;
}

/** How long the scaffold takes from the start of its process until it is ready. */
export async function scaffold(rounds: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  const issuer = await startServer([...BUILT, 'dev'], { TILLGATE_DATA_DIR: join(folder, 'issuer') });
  const external = { TILLGATE_AUTH_URL: issuer.report['auth_url'] ?? '' };
  const known = { TILLGATE_DATA_DIR: join(folder, 'known') };
  const starts = {
    'tillgate dev, for the first time': (round: number) =>
      startServer([...BUILT, 'dev'], { TILLGATE_DATA_DIR: join(folder, `new-${round}`) }),
    'tillgate dev': () => startServer([...BUILT, 'dev'], known),
    'tillgate serve': () => startServer([...BUILT, 'serve'], external),
    'npm run dev': () => startServer(['npm', 'run', '-s', 'dev', '--'], known),
  };
  const measured = Object.entries(starts).map(([name, start]) => ({ name, start, all: [] as Start[] }));
  try {
    await (await starts['tillgate dev']()).stop();
    for (let round = 0; round < rounds; round++) {
      for (const { start, all } of measured) {
        const running = await start(round);
        all.push(running.start);
        await running.stop();
      }
    }
  } finally {
    await issuer.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return table(
    ['start', 'ready after ms', 'CPU ms'],
    measured.map(({ name, all }) => [
      name,
      Math.round(median(all.map(({ wallMs }) => wallMs))),
      name.startsWith('npm') ? '' : Math.round(median(all.map(({ cpuMs }) => cpuMs))),
    ]),
  );
}

/** Starts a server command on free ports and waits for its report, which it prints when it is ready. */
async function startServer([command = '', ...args]: readonly string[], env: Record<string, string>): Promise<Running> {
  const ports = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'warn' };
  const startedMs = performance.now();
  const child = spawn(command, [...args, '--json'], {
    cwd: ROOT,
    env: { ...process.env, ...ports, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    // npm hands no signal on to what it has started: the whole group is asked.
    detached: true,
  });
  let printed = '';
  const report = await new Promise<Record<string, string>>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${command} ${args.join(' ')} ended with ${code}`)));
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      if (printed.trimEnd().endsWith('}')) resolve(JSON.parse(printed) as Record<string, string>);
    });
  });
  const pid = child.pid ?? 0;
  const start = { wallMs: performance.now() - startedMs, cpuMs: cpuMsOf(pid) };
  return {
    report,
    start,
    async stop() {
      const ended = once(child, 'exit');
      process.kill(-pid, 'SIGTERM');
      await ended;
    },
  };
}

/** User and system time of a process so far (proc(5), `stat`): ticks of 10 ms. */
function cpuMsOf(pid: number): number {
  const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  const fields = rest.split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
