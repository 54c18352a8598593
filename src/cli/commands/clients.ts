import { escapeUnsafe } from '../../core/logger';
import { ALL_CLIENTS } from '../../generation/log';
import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import type { CommandContext, CommandOptions } from '../command';
import { credentialStore } from '../credentials';
import type { Credential, CredentialStore } from '../credentials';
import { CliError, EXIT, print, table } from '../command';
import { publish } from './generations';
import { clientPath, tokenServer } from '../token-server';
import type { ChangedClient, Client, ClientWithSecret, Published, TokenResponse, TokenServer } from '../token-server';

interface Tools {
  readonly settings: Settings;
  readonly server: TokenServer;
  readonly credentials: CredentialStore;
}

/** `tillgate clients list` */
export async function list(context: CommandContext): Promise<number> {
  const { clients } = await tools(context).server.clients<{ clients: readonly Client[] }>('GET', '');
  const rows = clients.map(({ client_id, description, scope, disabled }) => [
    client_id,
    disabled ? 'disabled' : 'active',
    description,
    scope,
  ]);
  print(context, clients, table([['CLIENT', 'STATE', 'DESCRIPTION', 'SCOPES'], ...rows]));
  return EXIT.ok;
}

/** `tillgate clients add <client>` */
export async function add(context: CommandContext, options: CommandOptions, clientId: string): Promise<number> {
  if (options.scope === undefined) {
    throw new CliError('give --scope "orders:read orders:write": the scopes that the client may ask for', EXIT.usage);
  }
  const { server, credentials } = tools(context);
  const client = await server.clients<ClientWithSecret>('POST', '', {
    client_id: clientId,
    description: options.description ?? '',
    scope: options.scope,
  });
  const text = `registered ${escapeUnsafe(client.client_id)}\nsecret, shown only now: ${client.client_secret}`;
  print(context, client, text + warningOf(client));
  await keep(credentials, client.client_id, client);
  return EXIT.ok;
}

/** `tillgate clients describe <client> <text>` */
export async function describe(context: CommandContext, clientId: string, description: string): Promise<number> {
  const { server } = tools(context);
  const client = await server.clients<ChangedClient & { token?: TokenResponse }>('PATCH', clientPath(clientId), {
    description,
  });
  const outcome = client.token
    ? `described ${clientId}: its earlier tokens are discarded; the new one:\n${client.token.access_token}`
    : `${clientId} has that Description already: its tokens stay`;
  print(context, client, outcome + warningOf(client));
  return EXIT.ok;
}

/** `tillgate clients rotate <client>` */
export async function rotate(context: CommandContext, options: CommandOptions, clientId: string): Promise<number> {
  const { server, credentials } = tools(context);
  const rotated = await server.clients<ClientWithSecret>('POST', `${clientPath(clientId)}/secrets`, {
    ...(options.keepTokens && { keep_tokens: true }),
    ...(options.revokePrevious && { revoke_previous: true }),
  });
  const text = `new secret of ${clientId}, shown only now: ${rotated.client_secret}`;
  print(context, rotated, text + warningOf(rotated));
  const { scope } = await server.clients<Client>('GET', clientPath(clientId));
  await keep(credentials, clientId, { client_secret: rotated.client_secret, scope });
  return EXIT.ok;
}

/** `tillgate clients remove <client>` */
export async function remove(context: CommandContext, clientId: string): Promise<number> {
  const { server, credentials } = tools(context);
  await server.clients('DELETE', clientPath(clientId));
  await credentials.remove(clientId);
  print(context, { client_id: clientId, removed: true }, `removed ${clientId}: its tokens are discarded`);
  return EXIT.ok;
}

/** `tillgate revoke <client>` and `tillgate revoke --all` */
export async function revoke(context: CommandContext, options: CommandOptions, given?: string): Promise<number> {
  const clientId = options.all ? ALL_CLIENTS : given;
  if (clientId === undefined || (options.all && given !== undefined)) {
    throw new CliError('give a client, or --all', EXIT.usage);
  }
  if (options.generations !== undefined) return publish(context, options, clientId);
  const changed = await tools(context).server.clients<Published>('POST', `${clientPath(clientId)}/revoke`);
  const whose = clientId === ALL_CLIENTS ? 'all clients' : clientId;
  print(context, changed, `revoked: every token of ${whose} issued so far is discarded${warningOf(changed)}`);
  return EXIT.ok;
}

/** A further line where the generation source lacks the change; other token servers do not say. */
function warningOf({ published }: Published): string {
  if (published !== false) return '';
  return '\nwarning: not published yet: APIs that read the generation source accept earlier tokens until it has the change';
}

/** After the secret is printed: a disk that is full must not lose it. */
async function keep(credentials: CredentialStore, clientId: string, credential: Credential): Promise<void> {
  try {
    await credentials.set(clientId, credential);
  } catch (error) {
    throw new CliError(`the secret above is valid, but could not be kept here: ${(error as Error).message}`);
  }
}

function tools({ io }: CommandContext): Tools {
  const settings = readSettings(io.env);
  return { settings, server: tokenServer(io, settings), credentials: credentialStore(settings) };
}
