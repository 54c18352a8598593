import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { prepareDataDirectory, writeDurably } from './auth-server/data-directory';
import type { Settings } from 'tillgate/env';
import { CliError, EXIT, readGiven, usageError, type CliIo, type CommandOptions } from './command';
import { usesEmbedded } from './settings';

/*
 * The secrets of clients that were registered with this command line, so that `token` and `call` need none: for
 * development. They are in `credentials.json` in the data directory, readable for its owner only, and are kept apart by
 * token server: a secret is never sent to another one.
 */

/** A client secret that this command line was given when it registered the client. */
export interface Credential {
  readonly client_secret: string;
  readonly scope: string;
}

/** The credential of a client at the token server of the settings. */
export async function keptCredential(settings: Settings, clientId: string): Promise<Credential | undefined> {
  return (await readContents(settings)).get(serverOf(settings))?.get(clientId);
}

/** Whether a secret was ever kept for the token server of the settings. */
export async function hasCredentials(settings: Settings): Promise<boolean> {
  return (await readContents(settings)).has(serverOf(settings));
}

/** Keeps the credential of a client, or with `undefined` removes it. */
export async function keepCredential(
  settings: Settings,
  clientId: string,
  credential: Credential | undefined,
): Promise<void> {
  await prepareDataDirectory(settings.dataDir);
  const contents = await readContents(settings);
  const credentials = contents.get(serverOf(settings)) ?? new Map<string, Credential>();
  if (credential) credentials.set(clientId, { client_secret: credential.client_secret, scope: credential.scope });
  else credentials.delete(clientId);
  contents.set(serverOf(settings), credentials);
  const document = Object.fromEntries([...contents].map(([server, each]) => [server, Object.fromEntries(each)]));
  await writeDurably(fileOf(settings), `${JSON.stringify(document, undefined, 2)}\n`);
}

async function readContents(settings: Settings): Promise<Map<string, Map<string, Credential>>> {
  const file = fileOf(settings);
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}';
    throw new CliError(`cannot read ${file}: ${error.message}`, EXIT.configuration);
  });
  try {
    const servers = Object.entries(JSON.parse(text) as Record<string, Record<string, Credential>>);
    return new Map(servers.map(([server, credentials]) => [server, new Map(Object.entries(credentials))]));
  } catch {
    throw new CliError(`${file} is broken; remove it, then give every client a new secret: clients rotate <client>`);
  }
}

function fileOf({ dataDir }: Settings): string {
  return join(dataDir, 'credentials.json');
}

function serverOf(settings: Settings): string {
  return usesEmbedded(settings) ? 'embedded' : (settings.authUrl ?? settings.issuer ?? '');
}

/** The client secret of `--secret` or `--secret-file`; `undefined` where neither is given. */
export async function givenSecret(io: CliIo, { secret, secretFile }: CommandOptions): Promise<string | undefined> {
  if (secret !== undefined && secretFile !== undefined) throw usageError('give --secret or --secret-file, not both');
  return secretFile === undefined ? secret : (await readGiven(io, secretFile, 'cannot read the secret')).trim();
}
