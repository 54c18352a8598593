import { generationsFromUrl } from '../../generation/from-url';
import type { SourceDependencies } from '../../generation/source-url';
import { FIRST_TIME_MS, isGeneration } from '../../generation/generation';
import { isSecureUrl } from '../../core/urls';
import type { GenerationSource } from '../../generation/index';
import { readSettings } from '../../settings/settings';
import type { CommandContext, CommandOptions } from '../command';
import { CliError, EXIT, print, table } from '../command';
import { authorizedGenerations } from '../gate';
import type { CliIo } from '../io';
import { apiSettings } from '../settings';

const DAY_MS = 86_400_000;

/** `tillgate generations publish <client>`, and `tillgate revoke <client> --generations <url>` */
export async function publish(context: CommandContext, options: CommandOptions, clientId: string): Promise<number> {
  const generation = numberOf('--generation', options.generation) ?? Date.now();
  refuseFarFuture(generation);
  return withSource(context, options, async (source) => {
    if (!source.publish) {
      throw new CliError('this source can only be read: revoke the client at its token server instead', EXIT.usage);
    }
    await source.publish(clientId, generation);
    const text = `published: tokens of ${clientId} with a generation below ${generation} are refused from here on`;
    print(context, { client_id: clientId, generation }, text);
  });
}

/** `tillgate generations list` */
export async function list(context: CommandContext, options: CommandOptions): Promise<number> {
  const since = numberOf('--since', options.since) ?? 0;
  return withSource(context, options, async (source) => {
    const { floors, nowMs } = await source.read(since);
    const sorted = [...floors].sort(([a], [b]) => (a < b ? -1 : 1));
    const document = {
      now: Math.floor(nowMs),
      floors: sorted.map(([client_id, generation]) => ({ client_id, generation })),
    };
    print(context, document, table([['CLIENT', 'GENERATION'], ...sorted.map(([id, floor]) => [id, String(floor)])]));
  });
}

/** Opens the source of `--generations`, else of the settings, and always closes it. */
async function withSource(
  { io }: CommandContext,
  options: CommandOptions,
  work: (source: GenerationSource) => Promise<void>,
): Promise<number> {
  const source = openSource(io, options.generations);
  try {
    await work(source);
    return EXIT.ok;
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
    return fromUrl(given, { fetch, allowHttp: true, maxTokenAgeMs: storeTokenAgeMs(env) });
  }
  const settings = apiSettings(readSettings(env));
  if (settings.generationSource === undefined) {
    const example = 'redis://..., postgres://... or http(s)://...';
    throw new CliError(`give --generations ${example}, or set TILLGATE_GENERATIONS`, EXIT.usage);
  }
  return (
    authorizedGenerations(settings, { fetch }) ??
    fromUrl(settings.generationSource, {
      fetch,
      allowHttp: settings.allowHttp,
      maxTokenAgeMs: settings.maxTokenAgeSeconds * 1000,
    })
  );
}

/** Some 30 years: `publish()` removes nothing from the store. */
const KEEP_ALL_MS = 1e12;

/**
 * Only as it is set: this environment need not be that of the processes that read the store, and a limit below theirs
 * would make all of them unavailable.
 */
function storeTokenAgeMs(env: CliIo['env']): number {
  const name = 'TILLGATE_MAX_TOKEN_AGE_SECONDS';
  return Object.hasOwn(env, name) ? readSettings(env).maxTokenAgeSeconds * 1000 : KEEP_ALL_MS;
}

/** The rule of TILLGATE_GENERATIONS: in plain text, floors can be forged on the way. */
function requireTls(url: string, env: CliIo['env']): void {
  if (!/^http:/i.test(url) || isSecureUrl(url) || readSettings(env).allowHttp) return;
  throw new CliError(
    '--generations: http: is for loopback only; use https:, or set TILLGATE_ALLOW_HTTP=on',
    EXIT.usage,
  );
}

function fromUrl(url: string, dependencies: SourceDependencies): GenerationSource {
  try {
    return generationsFromUrl(url, dependencies);
  } catch (error) {
    throw new CliError((error as Error).message, EXIT.usage);
  }
}

/** Floors never go down again: a number with three digits too many would lock the client out for good. */
function refuseFarFuture(generation: number): void {
  if (generation < FIRST_TIME_MS || generation < Date.now() + DAY_MS) return;
  throw new CliError(
    `--generation: got ${generation}, a time in ms that has not come yet: every token of the client would be refused until then`,
    EXIT.usage,
  );
}

function numberOf(option: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const number = /^\d{1,16}$/.test(given) ? Number(given) : NaN;
  if (isGeneration(number)) return number;
  throw new CliError(
    `${option}: got ${JSON.stringify(given)}, expected a whole number, for example 1790000000123`,
    EXIT.usage,
  );
}
