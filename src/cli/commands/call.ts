import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import type { CommandContext, CommandOptions } from '../command';
import { CliError, EXIT, print } from '../command';
import { send } from '../http';
import type { HttpResponse } from '../http';
import { obtainToken } from './token';

/** Response headers that are shown. */
const SHOWN = [
  'www-authenticate',
  'content-type',
  'location',
  'etag',
  'link',
  'allow',
  'retry-after',
  'ratelimit',
  'x-placeholder',
  'x-request-id',
];

/** `tillgate call <method> <path>`: status, main headers and body; fails when the API refuses. */
export async function call(
  context: CommandContext,
  options: CommandOptions,
  method: string,
  path: string,
): Promise<number> {
  const settings = readSettings(context.io.env);
  const url = settings.baseUrl.replace(/\/$/, '') + checkPath(path);
  const json = checkData(options.data);
  const token = await callerToken(context, settings, options);
  const response = await send(context.io, url, { method: checkMethod(method), token, json });
  const headers = shownHeaders(response);
  print(context, { status: response.status, headers, body: response.body ?? response.text }, asText(response, headers));
  return response.status < 400 ? EXIT.ok : EXIT.failed;
}

/** Without `--as` and `--token` the call carries no token: to see the 401. */
async function callerToken(
  { io }: CommandContext,
  settings: Settings,
  options: CommandOptions,
): Promise<string | undefined> {
  if (options.as !== undefined && options.token !== undefined) {
    throw new CliError('give --as or --token, not both', EXIT.usage);
  }
  if (options.as === undefined) return checkToken(options.token);
  return (await obtainToken(io, settings, options.as, options)).access_token;
}

/** What a header cannot carry would be quoted by the error about it. */
function checkToken(token: string | undefined): string | undefined {
  if (token === undefined || /^[\x20-\x7e]*$/.test(token)) return token;
  throw new CliError('--token: expected printable ASCII without line breaks', EXIT.usage);
}

function checkMethod(method: string): string {
  if (/^[A-Za-z]+$/.test(method)) return method.toUpperCase();
  throw new CliError(`expected a method such as GET, got ${JSON.stringify(method)}`, EXIT.usage);
}

function checkPath(path: string): string {
  if (path.startsWith('/')) return path;
  throw new CliError(`expected a path such as /v1/orders, got ${JSON.stringify(path)}`, EXIT.usage);
}

function checkData(data: string | undefined): string | undefined {
  try {
    if (data !== undefined) JSON.parse(data);
    return data;
  } catch {
    throw new CliError('expected JSON in --data, for example --data \'{"name":"Espresso"}\'', EXIT.usage);
  }
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
