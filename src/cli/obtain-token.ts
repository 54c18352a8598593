import { readFile } from 'node:fs/promises';
import type { Settings } from '../index';
import type { CommandOptions } from './command';
import { credentialStore } from './credentials';
import { CliError, EXIT } from './exit';
import type { CliIo } from './io';
import { tokenServer } from './token-server';
import type { TokenAnswer } from './token-server';

/**
 * Requests a token as a client, with the secret that was given or the one that is kept.
 *
 * @throws CliError when the secret or the scopes are not known, or the token is denied
 */
export async function obtainToken(
  io: CliIo,
  settings: Settings,
  clientId: string,
  options: CommandOptions,
): Promise<TokenAnswer> {
  const kept = await credentialStore(settings).get(clientId);
  const secret = (await givenSecret(io, options)) ?? kept?.client_secret;
  const scope = options.scope ?? kept?.scope;
  if (secret === undefined) {
    throw new CliError(
      `the secret of ${clientId} is not known here; give --secret or --secret-file, or make a new one: ${io.programName} clients rotate ${clientId}`,
      EXIT.usage,
    );
  }
  if (scope === undefined) throw new CliError(`the scopes of ${clientId} are not known here; give --scope`, EXIT.usage);
  return tokenServer(io, settings).requestToken({ clientId, secret, scope });
}

async function givenSecret(io: CliIo, { secret, secretFile }: CommandOptions): Promise<string | undefined> {
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
