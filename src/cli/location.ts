import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { prepareDataDirectory, writeDurably } from './auth-server/data-directory';
import type { Environment, Settings } from 'tillgate/env';
import { attempt, isObject } from 'tillgate/internal';
import type { CliIo, CommandOptions } from './command';

/** Variables by which the other commands find the servers of `dev`, kept in the data directory while these run. */
const LOCATION = ['TILLGATE_HOST', 'TILLGATE_PORT', 'TILLGATE_BASE_URL', 'TILLGATE_AUTH_PORT'];

/**
 * The variables of a command: its options, then the environment, then the servers of `dev` that are running, then `.env`.
 *
 * @param starts - whether it starts servers itself
 */
export function environmentOf(io: Pick<CliIo, 'env' | 'cwd'>, options: CommandOptions, starts: boolean): Environment {
  const { app, port, authPort } = options;
  const file = io.env['NODE_ENV'] === 'production' ? {} : envFile(io.cwd, app);
  const env = { ...file, ...io.env };
  if (!starts) return { ...file, ...keptLocation(env['TILLGATE_DATA_DIR'] ?? '.tillgate'), ...io.env };
  const given = { TILLGATE_PORT: port, TILLGATE_AUTH_PORT: authPort };
  return { ...env, ...only(given, Object.keys(given)) };
}

/** The variables of the file `.env` next to the app, or else in the current directory. An app gets them too. */
function envFile(cwd: string, app: string | undefined): Environment {
  const folders = app === undefined ? [cwd] : [dirname(resolve(cwd, app)), cwd];
  const text = folders
    .map((folder) => attempt(() => readFileSync(join(folder, '.env'), 'utf8')))
    .find((one) => one !== undefined);
  const variables: Environment = parseEnv(text ?? '');
  if (app !== undefined) {
    for (const [name, value] of Object.entries(variables)) process.env[name] ??= value;
  }
  return variables;
}

function keptLocation(dataDir: string): Environment {
  const kept = attempt(() => JSON.parse(readFileSync(fileIn(dataDir), 'utf8')) as unknown);
  return isObject(kept) ? only(kept, LOCATION) : {};
}

function only(values: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = values[name];
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );
}

function fileIn(dataDir: string): string {
  return join(dataDir, 'servers.json');
}

/** Keeps where the servers of this process listen, unless that is the default. Returns what removes it again. */
export async function keepLocation(env: Environment, { dataDir }: Settings): Promise<() => Promise<void>> {
  const location = only(env, LOCATION);
  // The file of a process that was killed.
  const remove = (): Promise<void> => rm(fileIn(dataDir), { force: true });
  await remove();
  if (Object.keys(location).length > 0) {
    await prepareDataDirectory(dataDir);
    await writeDurably(fileIn(dataDir), `${JSON.stringify(location, undefined, 2)}\n`);
  }
  return remove;
}
