import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import type { CommandContext, CommandOptions } from '../command';
import { credentialStore, givenSecret } from '../credentials';
import { CliError, EXIT, print, write } from '../command';
import type { CliIo } from '../io';
import { isEmbedded } from '../settings';
import { tokenServer } from '../token-server';
import type { TokenResponse } from '../token-server';
import { spoilerOf } from './bad-token';

/** `tillgate token <client>`: the token alone on stdout, so that `$(tillgate token pos-terminal)` works. */
export async function token(context: CommandContext, options: CommandOptions, clientId: string): Promise<number> {
  const { io } = context;
  const settings = readSettings(io.env);
  const spoil = spoilerOf(options, settings);
  const response = await obtainToken(io, settings, clientId, options);
  if (!spoil) {
    print(context, response, response.access_token);
    return EXIT.ok;
  }
  const bad = await spoil(response.access_token);
  print(context, bad, bad.access_token);
  if (io.stderr.isTTY) write(io.stderr, `tillgate: an API refuses this token with 401 ${bad.refused_as}`);
  return EXIT.ok;
}

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
): Promise<TokenResponse> {
  const kept = await credentialStore(settings).get(clientId);
  const secret = (await givenSecret(io, options)) ?? kept?.client_secret;
  const scope = options.scope ?? kept?.scope;
  if (secret === undefined) throw await unknownSecret(io, settings, clientId);
  if (scope === undefined) throw new CliError(`the scopes of ${clientId} are not known here; give --scope`, EXIT.usage);
  return tokenServer(io, settings).requestToken({ clientId, secret, scope });
}

/** Only the embedded token server is asked whether it knows the client: another one is told nothing without need. */
async function unknownSecret(io: CliIo, settings: Settings, clientId: string): Promise<CliError> {
  const exists = isEmbedded(settings) ? await tokenServer(io, settings).hasClient(clientId) : undefined;
  const advice =
    exists === false
      ? `no client has this id; register it: ${io.programName} clients add ${clientId} --scope ...`
      : `give --secret or --secret-file, or make a new one: ${io.programName} clients rotate ${clientId}`;
  return new CliError(`the secret of ${clientId} is not known here; ${advice}`, EXIT.usage);
}
