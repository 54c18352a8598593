import { readSettings, type Settings } from 'tillgate/env';
import { attempt } from 'tillgate/internal';
import { EXIT, readGiven, readHeaders, usageError } from '../command';
import { print } from '../output';
import type { CliIo, CommandContext, CommandOptions } from '../command';
import { givenSecret, keptCredential } from '../credentials';
import { requestToken, send, type HttpResponse } from '../http';
import { usesEmbedded } from '../settings';

/** `tillgate token <client>`: the token alone on stdout, so that `$(tillgate token pos-terminal)` works. */
export async function token(context: CommandContext, options: CommandOptions, clientId: string): Promise<void> {
  const { io } = context;
  const settings = readSettings(io.env);
  const response = await obtainToken(io, settings, clientId, options);
  print(context, response, response.access_token);
}

/** Response headers that are shown. */
const SHOWN =
  'www-authenticate content-type location etag link allow retry-after ratelimit x-placeholder x-request-id'.split(' ');

/** `tillgate call <method> <path>`: status, main headers and body; fails when the API refuses. */
export async function call(
  context: CommandContext,
  options: CommandOptions,
  method: string,
  path: string,
): Promise<number> {
  const settings = readSettings(context.io.env);
  if (!path.startsWith('/')) throw usageError(`expected a path such as /v1/orders, got ${JSON.stringify(path)}`);
  const url = settings.baseUrl.replace(/\/$/, '') + path;
  const headers = readHeaders(options.header);
  const json = await readData(context.io, options.data, headers);
  // Without `--as` and `--token` the call carries no token: to see the 401.
  if (options.as !== undefined && options.token !== undefined) throw usageError('give --as or --token, not both');
  const issued = options.as === undefined ? undefined : await obtainToken(context.io, settings, options.as, options);
  const token = issued?.access_token ?? options.token;
  // What a header cannot carry would be quoted by the error about it.
  if (/[^\x20-\x7e]/.test(token ?? '')) throw usageError('--token: expected printable ASCII without line breaks');
  if (!/^[A-Za-z]+$/.test(method)) throw usageError(`expected a method such as GET, got ${JSON.stringify(method)}`);
  const response = await send(context.io, settings, url, { method: method.toUpperCase(), token, json, headers });
  const shown = shownHeaders(response);
  const document = { status: response.status, headers: shown, body: response.body ?? response.text };
  print(context, document, asText(response, shown));
  return response.status < 400 ? EXIT.ok : EXIT.failed;
}

/** The body, which is JSON unless the headers say otherwise; `@file` and `@-` name where it is. */
async function readData(io: CliIo, given: string | undefined, headers: object): Promise<string | undefined> {
  const file = given?.startsWith('@') ? given.slice(1) : undefined;
  const data = file === undefined ? given : await readGiven(io, file, `--data: cannot read ${file}`);
  const isJson = data === undefined || attempt(() => JSON.parse(data) as unknown) !== undefined;
  if (isJson || 'content-type' in headers) return data;
  throw usageError('expected JSON in --data, for example --data \'{"name":"Espresso"}\'');
}

function shownHeaders({ headers }: HttpResponse): Record<string, string> {
  return Object.fromEntries(SHOWN.flatMap((name) => (headers.has(name) ? [[name, headers.get(name) ?? '']] : [])));
}

function asText({ status, statusText, body, text }: HttpResponse, headers: Record<string, string>): string {
  const head = [
    `${status} ${statusText}`.trimEnd(),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  const shown = body === undefined ? text : JSON.stringify(body, undefined, 2);
  return shown ? `${head.join('\n')}\n\n${shown}` : head.join('\n');
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
): ReturnType<typeof requestToken> {
  const kept = await keptCredential(settings, clientId);
  const secret = (await givenSecret(io, options)) ?? kept?.client_secret;
  const scope = options.scope ?? kept?.scope;
  if (secret === undefined) {
    const clients = `${io.programName} clients`;
    const advice = `give --secret or --secret-file; ${clients} add registers a client, ${clients} rotate ${clientId} makes a new secret`;
    throw usageError(`the secret of ${clientId} is not known here: ${advice}`);
  }
  if (scope === undefined && usesEmbedded(settings))
    throw usageError(`the scopes of ${clientId} are not known here; give --scope`);
  return requestToken(io, settings, { clientId, secret, scope });
}
