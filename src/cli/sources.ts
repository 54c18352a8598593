import { createRequire } from 'node:module';
import { readSettings, type Settings } from 'tillgate/env';
import { httpGenerations, type GenerationSource, type HttpGenerationsOptions } from 'tillgate/generations';
import { generationsFromUrl } from 'tillgate/internal';
import { CliError, orUsageError, usageError, type CliIo, type CommandContext } from './command';
import { print } from './output';
import { apiSettings } from './settings';

/** The command brings clients of its own for Redis and PostgreSQL, which the gate cannot see. */
const load = createRequire(__filename);

/**
 * `tillgate revoke <client> --generations <url>`: tokens issued so far are refused. The floor is the time of now, which the
 * number that a server stamps never reaches.
 */
export async function publish(
  context: CommandContext,
  url: string,
  clientId: string,
  comparedBy: unknown = readSettings(context.io.env).generationClaim,
): Promise<void> {
  const source = openSource(context.io, url);
  try {
    if (!source.append) throw usageError('this source can only be read: revoke the client at its token server instead');
    if (await hasMark(source)) throw new CliError(markedLog(clientId));
    if (comparedBy !== 'iat') throw usageError(stampedLog(clientId));
    const generation = Date.now();
    await source.append([[clientId, generation]]);
    const text = `published generation ${generation}: ${refusedFromNowOn(clientId, 'their tokens expire')}`;
    print(context, { client_id: clientId, generation }, text);
  } catch (error) {
    if (error instanceof CliError) throw error;
    // The messages of our sources contain neither URL nor password.
    throw new CliError(`the generation source did not respond: ${(error as Error).message}`);
  } finally {
    await source.close?.();
  }
}

/** What a change that discards tokens means for callers. */
export function refusedFromNowOn(clientId: string, until: string): string {
  return `earlier tokens of ${clientId} are refused from now on; callers that do not fetch a new one stay out until ${until}`;
}

/** Whether a publisher keeps the log: what others append is not in its record, and is lost when the log is restored. */
async function hasMark(source: GenerationSource): Promise<boolean> {
  const reader = source.reader();
  for (;;) {
    const { mark, end } = await reader.next(0);
    if (mark) return true;
    if (end) return false;
  }
}

function markedLog(clientId: string): string {
  return `a publisher keeps this log, and a change from elsewhere would be lost when the log is restored. Change ${clientId} at its authorization server: in Keycloak with a bridge by any update, such as kcadm.sh update clients/<internal id> -r <realm> -s enabled=true; in a server of your own by publish() of its publisher. A log without a publisher has ?mark=off in its URL`;
}

function stampedLog(clientId: string): string {
  return `this publishes the time of now, which is right where the API compares the time of issue: then give --compared-by iat, or set TILLGATE_GENERATION_CLAIM=iat. Where the authorization server stamps a number into its tokens, no new token of ${clientId} would reach that time: raise the number there, by a change of its Description or its secret, and publish that number: docs/issuers.md, "Changes of clients"`;
}

/** Opens the source of `--generations`, which replaces TILLGATE_GENERATIONS, whatever the API compares; the caller closes it. */
export function openSource({ env, fetch }: CliIo, given: string | undefined): GenerationSource {
  const replaced = { ...env, TILLGATE_GENERATIONS: given, TILLGATE_GENERATION_CLAIM: undefined };
  const read = given === undefined ? readSettings(env) : orUsageError(() => readSettings(replaced));
  const settings = apiSettings(read);
  const { generationSource: url, allowHttp } = settings;
  if (url === undefined) {
    const example = 'redis://..., postgres://... or http(s)://...';
    throw usageError(`give --generations ${example}, or set TILLGATE_GENERATIONS`);
  }
  const authorized = authorizedGenerations(settings, { fetch });
  return authorized ?? orUsageError(() => generationsFromUrl(url, { fetch, load, allowHttp }));
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
