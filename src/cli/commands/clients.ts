import { readSettings } from 'tillgate/env';
import { escapeUnsafe } from 'tillgate/internal';
import { CliError, usageError, type CommandContext, type CommandOptions } from '../command';
import { print, table } from '../output';
import type { ChangedClient } from '../auth-server/index';
import { keepCredential, type Credential } from '../credentials';
import { callClients } from '../http';
import { publish, refusedFromNowOn } from '../sources';

/** `tillgate clients list` */
export async function list(context: CommandContext): Promise<void> {
  const { clients } = await callClients(context.io, 'GET', []);
  const rows = clients.map(({ client_id, description, scope, disabled }) => [
    client_id,
    disabled ? 'disabled' : 'active',
    description,
    scope,
  ]);
  print(context, clients, table([['CLIENT', 'STATE', 'DESCRIPTION', 'SCOPES'], ...rows]));
}

/** `tillgate clients add <client>` */
export async function add(context: CommandContext, options: CommandOptions, clientId: string): Promise<void> {
  const { description = '', scope } = options;
  if (scope === undefined) {
    throw usageError('give --scope "orders:read orders:write": the scopes that the client may ask for');
  }
  const registration = { client_id: clientId, description, scope };
  const client = await callClients(context.io, 'POST', [], registration);
  const text = `registered ${escapeUnsafe(client.client_id)}\nsecret, shown only now: ${client.client_secret}`;
  const warning = /[+%:]/.test(clientId) ? ENCODING : undefined;
  print(context, { ...client, warning }, text + warningOf(client) + (warning ? `\nwarning: ${warning}` : ''));
  await keep(context, client.client_id, client);
}

/** RFC 6749 section 2.3.1; docs/callers.md has the libraries. */
const ENCODING =
  'the id has one of + % : and many client libraries do not form-encode it for HTTP Basic; they get invalid_client';

/** `tillgate clients describe <client> <text>` */
export async function describe(context: CommandContext, clientId: string, description: string): Promise<void> {
  const client = await callClients(context.io, 'PATCH', [clientId], { description });
  const outcome = client.token
    ? `described ${clientId}: ${outcomeOf(client) ?? 'its earlier tokens are discarded'}; the new one:\n${client.token.access_token}`
    : `${clientId} has that Description already: its tokens stay`;
  print(context, client, outcome + warningOf(client));
}

/** `tillgate clients scopes <client>` */
export async function scopes(
  context: CommandContext,
  { add: added, remove: removed }: CommandOptions,
  clientId: string,
): Promise<void> {
  if (added === undefined && removed === undefined) {
    throw usageError('give --add "orders:write", --remove "orders:write", or both');
  }
  const before = (await callClients(context.io, 'GET', [clientId])).scope.split(' ');
  const taken = namesIn(removed);
  const missing = taken.find((scope) => !before.includes(scope));
  if (missing !== undefined) throw new CliError(`${clientId} does not have ${missing}: it has ${before.join(' ')}`);
  const scope = [...new Set([...before, ...namesIn(added)])].filter((one) => !taken.includes(one)).join(' ');
  if (scope === '') throw usageError(`${clientId} would have no scope left: clients remove ${clientId} deletes it`);
  const client = await callClients(context.io, 'PATCH', [clientId], { scope });
  const outcome = taken.length > 0 ? '\nits earlier tokens are discarded' : '';
  print(context, client, `${clientId} has ${client.scope}${outcome}${warningOf(client)}`);
}

function namesIn(scopes = ''): readonly string[] {
  return scopes.split(' ').filter((scope) => scope !== '');
}

/** `tillgate clients rotate <client>` */
export async function rotate(context: CommandContext, options: CommandOptions, clientId: string): Promise<void> {
  const rotated = await callClients(context.io, 'POST', [clientId, 'secrets'], {
    ...(options.keepTokens && { keep_tokens: true }),
    ...(options.revokePrevious && { revoke_previous: true }),
  });
  const text = `new secret of ${clientId}, shown only now: ${rotated.client_secret}`;
  print(context, rotated, text + warningOf(rotated));
  const { scope } = await callClients(context.io, 'GET', [clientId]);
  await keep(context, clientId, { client_secret: rotated.client_secret, scope });
}

/** `tillgate clients remove <client>` */
export async function remove(context: CommandContext, clientId: string): Promise<void> {
  const settings = readSettings(context.io.env);
  await callClients(context.io, 'DELETE', [clientId]);
  await keepCredential(settings, clientId, undefined);
  print(context, { client_id: clientId, removed: true }, `removed ${clientId}: its tokens are discarded`);
}

/** `tillgate revoke <client>` */
export async function revoke(context: CommandContext, options: CommandOptions, clientId: string): Promise<void> {
  const { generations, comparedBy } = options;
  if (comparedBy !== undefined && (comparedBy !== 'iat' || generations === undefined)) {
    throw usageError('--compared-by goes with --generations, and is iat');
  }
  if (generations !== undefined) return publish(context, generations, clientId, comparedBy);
  const changed = await callClients(context.io, 'POST', [clientId, 'revoke']);
  const outcome = outcomeOf(changed) ?? `every token of ${clientId} issued so far is discarded`;
  print(context, changed, `revoked: ${outcome}${warningOf(changed)}`);
}

/** What follows for callers, where tokens are left that have not expired; other token servers do not say. */
function outcomeOf(changed: ChangedClient): string | undefined {
  const { client_id, earlier_tokens_expire_at: at, earlier_tokens_expire_by: by } = changed;
  const until = at ?? (by === undefined ? undefined : `${by} at the latest`);
  return until === undefined ? undefined : refusedFromNowOn(escapeUnsafe(client_id), until);
}

/** A further line where the generation source lacks the change; other token servers do not say. */
function warningOf({ published }: { readonly published: boolean }): string {
  if (published !== false) return '';
  return '\nwarning: not published yet: APIs that read the generation source accept earlier tokens until it has the change';
}

/** After the secret is printed: a disk that is full must not lose it. */
async function keep({ io }: CommandContext, clientId: string, credential: Credential): Promise<void> {
  await keepCredential(readSettings(io.env), clientId, credential).catch(({ message }: Error) => {
    throw new CliError(`the secret above is valid, but could not be kept here: ${message}`);
  });
}
