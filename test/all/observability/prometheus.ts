import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import { requireCommand } from '../setup/packages';
import { collect, stop } from '../setup/process';
import { eventually } from '../support/eventually';
import { freePort } from '../support/free-port';

/** A Prometheus of our own, which scrapes and evaluates twice a second. */
export interface PrometheusServer {
  /** `data` of a response of its API: `get('alerts')`. */
  get<Data>(path: string, parameters?: Readonly<Record<string, string>>): Promise<Data>;
  /** Stops it and removes its files. */
  stop(): Promise<void>;
}

/**
 * Starts Debian's Prometheus. Its first scrape comes after 5 s: that pause cannot be set.
 *
 * @param target - the address that it scrapes, as job `api`
 * @param rules - text of a file of rules
 * @throws Error with its log when it ends
 */
export async function startPrometheus(target: string, rules: string): Promise<PrometheusServer> {
  requireCommand('prometheus', 'apt-get install prometheus');
  const folder = await mkdtemp(join(tmpdir(), 'tillgate-prometheus-'));
  const configuration = {
    global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '500ms' },
    rule_files: ['rules.yaml'],
    scrape_configs: [{ job_name: 'api', static_configs: [{ targets: [target] }] }],
  };
  await writeFile(join(folder, 'rules.yaml'), rules);
  await writeFile(join(folder, 'prometheus.yml'), dump(configuration));
  const port = await freePort();
  const files = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`];
  const child = spawn('prometheus', [...files, `--web.listen-address=127.0.0.1:${port}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const log = collect(child.stderr);
  // A server must not outlive the tests, whatever ends them.
  const onExit = (): void => void child.kill('SIGKILL');
  process.once('exit', onExit);
  await eventually('Prometheus is ready', async () => {
    if (child.exitCode !== null) throw new Error(`prometheus ended with ${child.exitCode}. It wrote:\n${log()}`);
    return fetch(`http://127.0.0.1:${port}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  return {
    async get<Data>(path: string, parameters: Readonly<Record<string, string>> = {}) {
      const response = await fetch(
        `http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`,
      );
      const { data, error } = (await response.json()) as { readonly data: Data; readonly error?: string };
      if (error !== undefined) throw new Error(`${path} ${JSON.stringify(parameters)}: ${error}`);
      return data;
    },
    async stop() {
      process.off('exit', onExit);
      await stop(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
