import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { prepareDataDirectory, tryLock } from '../auth-server/storage/data-directory';
import { writeDurably } from '../auth-server/storage/durable-file';
import type { Settings } from '../settings/settings';
import { CliError, EXIT } from './command';
import type { CommandOptions } from './command';
import type { CliIo } from './io';
import { isEmbedded } from './settings';

/** A client secret that this command line was given when it registered the client. */
export interface Credential {
  readonly client_secret: string;
  readonly scope: string;
}

/**
 * The secrets of clients that were registered with this command line, so that `token` and `call` need none: for
 * development. They are in `credentials.json` in the data directory, readable for its owner only, and are kept apart
 * by token server: a secret is never sent to another one.
 */
export interface CredentialStore {
  get(clientId: string): Promise<Credential | undefined>;
  set(clientId: string, credential: Credential): Promise<void>;
  remove(clientId: string): Promise<void>;
  /** Whether no secret was ever kept for this token server. */
  isNew(): Promise<boolean>;
}

type Contents = Map<string, Map<string, Credential>>;

/** Opens the store for the token server of the settings. */
export function credentialStore(settings: Settings): CredentialStore {
  const file = join(settings.dataDir, 'credentials.json');
  const server = isEmbedded(settings) ? 'embedded' : (settings.authUrl ?? settings.issuer ?? '');

  async function change(edit: (credentials: Map<string, Credential>) => void): Promise<void> {
    await prepareDataDirectory(settings.dataDir);
    const unlock = await lock(file);
    try {
      const contents = await readContents(file);
      const credentials = contents.get(server) ?? new Map<string, Credential>();
      edit(credentials);
      await writeContents(file, contents.set(server, credentials));
    } finally {
      await unlock();
    }
  }

  return {
    get: async (clientId) => (await readContents(file)).get(server)?.get(clientId),
    set: (clientId, { client_secret, scope }) =>
      change((credentials) => credentials.set(clientId, { client_secret, scope })),
    remove: (clientId) => change((credentials) => credentials.delete(clientId)),
    isNew: async () => !(await readContents(file)).has(server),
  };
}

const LOCK_RETRY_MS = 20;

/** Takes the lock that commands of other processes wait for: each reads, changes and writes the whole file. */
async function lock(file: string): Promise<() => Promise<void>> {
  for (;;) {
    const attempt = await tryLock(`${file}.lock`);
    if ('release' in attempt) return attempt.release;
    await wait(LOCK_RETRY_MS);
  }
}

async function readContents(file: string): Promise<Contents> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map();
    throw new CliError(`cannot read ${file}: ${(error as Error).message}`, EXIT.configuration);
  }
  try {
    const servers = Object.entries(JSON.parse(text) as Record<string, Record<string, Credential>>);
    return new Map(servers.map(([server, credentials]) => [server, new Map(Object.entries(credentials))]));
  } catch {
    throw new CliError(`${file} is broken; remove it, then give every client a new secret: clients rotate <client>`);
  }
}

async function writeContents(file: string, contents: Contents): Promise<void> {
  const document = Object.fromEntries([...contents].map(([server, each]) => [server, Object.fromEntries(each)]));
  await writeDurably(file, `${JSON.stringify(document, undefined, 2)}\n`);
}

/** The client secret of `--secret` or `--secret-file`; `undefined` where neither is given. */
export async function givenSecret(io: CliIo, { secret, secretFile }: CommandOptions): Promise<string | undefined> {
  if (secret !== undefined && secretFile !== undefined) {
    throw new CliError('give --secret or --secret-file, not both', EXIT.usage);
  }
  if (secretFile === undefined) return secret;
  try {
    return (await (secretFile === '-' ? io.readStdin() : readFile(secretFile, 'utf8'))).trim();
  } catch (error) {
    throw new CliError(`cannot read the secret: ${(error as Error).message}`, EXIT.usage);
  }
}
