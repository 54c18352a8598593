import { readSettings } from 'tillgate/env';
import type { Settings } from 'tillgate/env';
import { httpGenerations } from 'tillgate/generations';
import type { GenerationSource, HttpGenerationsOptions } from 'tillgate/generations';
import { FIRST_TIME_MS, generationsFromUrl, isGeneration, isSecureUrl } from 'tillgate/internal';
import { CliError, EXIT, print, table } from '../command';
import type { CliIo, CommandContext, CommandOptions } from '../command';
import { apiSettings } from '../settings';

const DAY_MS = 86_400_000;

/** `tillgate generations publish <client>`, and `tillgate revoke <client> --generations <url>` */
export async function publish(context: CommandContext, options: CommandOptions, clientId: string): Promise<void> {
  const generation = generationOf(options);
  return withSource(context, options, async (source) => {
    if (!source.append) {
      throw new CliError('this source can only be read: revoke the client at its token server instead', EXIT.usage);
    }
    await source.append([[clientId, generation]]);
    const text = `published: tokens of ${clientId} with a generation below ${generation} are refused from here on`;
    print(context, { client_id: clientId, generation }, text);
  });
}

/** `tillgate generations list` */
export async function list(context: CommandContext, options: CommandOptions): Promise<void> {
  return withSource(context, options, async (source) => {
    const floors = await readFloors(source);
    const sorted = [...floors].sort(([a], [b]) => (a < b ? -1 : 1));
    const document = { floors: sorted.map(([client_id, generation]) => ({ client_id, generation })) };
    print(context, document, table([['CLIENT', 'GENERATION'], ...sorted.map(([id, floor]) => [id, String(floor)])]));
  });
}

/** The highest generation of each client in the log. */
async function readFloors(source: GenerationSource): Promise<ReadonlyMap<string, number>> {
  const floors = new Map<string, number>();
  const reader = source.reader();
  for (let end = false; !end;) {
    const batch = await reader.next(0);
    for (const [id, generation] of batch.changes) floors.set(id, Math.max(generation, floors.get(id) ?? 0));
    ({ end } = batch);
  }
  reader.close();
  return floors;
}

/** Opens the source of `--generations`, else of the settings, and always closes it. */
async function withSource(
  { io }: CommandContext,
  options: CommandOptions,
  work: (source: GenerationSource) => Promise<void>,
): Promise<void> {
  const source = openSource(io, options.generations);
  try {
    await work(source);
  } catch (error) {
    if (error instanceof CliError) throw error;
    // The messages of our sources contain neither URL nor password.
    throw new CliError(`the generation source did not respond: ${(error as Error).message}`);
  } finally {
    await source.close?.();
  }
}

/** Opens the source of `--generations`, else of the settings; the caller closes it. */
export function openSource({ env, fetch }: CliIo, given: string | undefined): GenerationSource {
  if (given !== undefined) {
    requireTls(given, env);
    return made(() => generationsFromUrl(given, { fetch, allowHttp: true }));
  }
  const settings = apiSettings(readSettings(env));
  const { generationSource: url, allowHttp } = settings;
  if (url === undefined) {
    const example = 'redis://..., postgres://... or http(s)://...';
    throw new CliError(`give --generations ${example}, or set TILLGATE_GENERATIONS`, EXIT.usage);
  }
  return authorizedGenerations(settings, { fetch }) ?? made(() => generationsFromUrl(url, { fetch, allowHttp }));
}

/** The rule of TILLGATE_GENERATIONS: in plain text, floors can be forged on the way. */
function requireTls(url: string, env: CliIo['env']): void {
  if (!/^http:/i.test(url) || isSecureUrl(url) || readSettings(env).allowHttp) return;
  throw new CliError(
    '--generations: http: is for loopback only; use https:, or set TILLGATE_ALLOW_HTTP=on',
    EXIT.usage,
  );
}

/** What `make` returns; its errors are about options of the command. */
export function made<Made>(make: () => Made): Made {
  try {
    return make();
  } catch (error) {
    throw new CliError((error as Error).message, EXIT.usage);
  }
}

/** Floors never go down again: a number with three digits too many would lock the client out for good. */
function generationOf({ generation: given }: CommandOptions): number {
  if (given === undefined) return Date.now();
  const generation = /^\d{1,16}$/.test(given) ? Number(given) : NaN;
  if (!isGeneration(generation)) {
    const got = JSON.stringify(given);
    throw new CliError(`--generation: got ${got}, expected a whole number, for example 1790000000123`, EXIT.usage);
  }
  if (generation < FIRST_TIME_MS || generation < Date.now() + DAY_MS) return generation;
  throw new CliError(
    `--generation: got ${given}, a time in ms that has not come yet: every token of the client would be refused until then`,
    EXIT.usage,
  );
}

/**
 * The source of the settings, read with the admin token; the caller closes it. `undefined` where the token is not sent:
 * there is none, the URL has credentials, or the source is not at the token server, to which alone the token belongs.
 */
export function authorizedGenerations(
  { generationSource: url, authUrl, issuer, adminToken, allowHttp }: Settings,
  dependencies: Pick<HttpGenerationsOptions, 'fetch'>,
): GenerationSource | undefined {
  const tokenServerUrl = authUrl ?? issuer;
  if (adminToken === undefined || !url?.startsWith('http') || url.includes('@')) return undefined;
  if (tokenServerUrl === undefined || new URL(url).origin !== new URL(tokenServerUrl).origin) return undefined;
  return httpGenerations({ url, allowHttp, headers: { authorization: `Bearer ${adminToken}` }, ...dependencies });
}
