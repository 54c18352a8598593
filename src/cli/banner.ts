import type { ClientWithSecret } from './auth-server/index';
import { escapeUnsafe } from 'tillgate/internal';
import { table } from './output';

type NewClient = Pick<ClientWithSecret, 'client_id' | 'client_secret' | 'scope'>;

/** What `dev` prints once its token server is ready. */
interface DevReport {
  readonly ready_ms: number;
  /** Absent with `--token-server`. */
  readonly base_url?: string;
  readonly auth_url: string;
  /** `aud` of the tokens. */
  readonly audience: string;
  readonly data_dir: string;
  readonly console_url: string | undefined;
  /** Scopes that clients may have; `undefined`: any. */
  readonly scopes: readonly string[] | undefined;
  /** Clients that were registered by this start, with their secrets. */
  readonly clients: readonly NewClient[];
}

/** Paths of the API that show what the gate does. */
export interface Samples {
  /** Of a GET that the demo till may send. */
  readonly allowed: string | undefined;
  /** What its token needs. */
  readonly scope: string;
  /** Of a POST that the demo kiosk is denied. */
  readonly denied: string | undefined;
}

/**
 * The report as text. Only the first start shows secrets.
 *
 * @param location - the variable with which a command in any folder finds the secrets of the clients
 */
export function banner(report: DevReport, programName: string, samples: Samples, location: string): string {
  const { base_url, auth_url, data_dir, console_url, clients, ready_ms } = report;
  const rows = [
    ...(base_url === undefined ? [] : [['API', base_url, 'as your app starts']]),
    ['token server', auth_url, `data in ${data_dir}`],
    ...(console_url === undefined ? [] : [['console', console_url, 'clients and live requests']]),
  ];
  const parts = [
    `The token server is ready in ${ready_ms} ms`,
    indent(table(rows)),
    ...(clients.length > 0 ? [secrets(clients)] : []),
    ...(base_url === undefined ? variables(report) : tryIt(report, base_url, programName, samples)),
    goOn(report, programName, samples, location),
    'Ctrl+C stops it.',
  ];
  return `\n${parts.join('\n\n')}\n`;
}

/** What an API that runs elsewhere needs. */
function variables({ auth_url, audience, scopes }: DevReport): string[] {
  const lines = [
    `TILLGATE_AUTH_URL=${auth_url}`,
    `TILLGATE_AUDIENCE=${audience}`,
    `TILLGATE_GENERATIONS=${auth_url}/generations`,
  ];
  return [
    'Scopes that clients may have:',
    indent(wrapped(scopes?.join(' ') ?? 'any; --scopes and --openapi name those of your API', COLUMNS).join('\n')),
    'Your API trusts it with these variables:',
    indent(lines.join('\n')),
  ];
}

function secrets(clients: readonly NewClient[]): string {
  const width = Math.max(...clients.map(({ client_id }) => escapeUnsafe(client_id).length)) + 2;
  const lines = clients.flatMap(({ client_id, client_secret, scope }) => [
    escapeUnsafe(client_id).padEnd(width) + client_secret,
    ...wrapped(scope, COLUMNS - width).map((line) => ' '.repeat(width) + line),
  ]);
  return `Registered for you; the secrets are shown only now:\n\n${indent(lines.join('\n'))}`;
}

/** Width of a common terminal, without the indentation. */
const COLUMNS = 76;

/** The words of a text in lines of at most so many characters. */
function wrapped(text: string, columns: number): readonly string[] {
  return text.match(new RegExp(`\\S.{0,${columns - 1}}(?= |$)|\\S+`, 'g')) ?? [];
}

/** One line of plain shell that works when pasted: token, then call. */
function tryIt(
  { clients, auth_url }: DevReport,
  base_url: string,
  programName: string,
  { allowed, scope }: Samples,
): string[] {
  if (allowed === undefined) return [];
  const till = clients.find(({ client_id }) => client_id === 'pos-terminal');
  const fetched = till
    ? `curl -s ${auth_url}/connect/token -d grant_type=client_credentials -d client_id=${till.client_id} -d client_secret=${till.client_secret} -d scope=${scope} | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/'`
    : `${programName} token pos-terminal`;
  const line = `TOKEN=$(${fetched}); curl -i ${base_url.replace(/\/$/, '')}${allowed} -H "Authorization: Bearer $TOKEN"`;
  return [`Try it, in another terminal:\n\n${indent(line)}`];
}

function goOn({ base_url, scopes }: DevReport, programName: string, samples: Samples, location: string): string {
  const { allowed, denied } = samples;
  const calls = [
    ...(allowed === undefined ? [] : [[`${programName} call GET ${allowed} --as pos-terminal`, '200']]),
    ...(denied === undefined ? [] : [[`${programName} call POST ${denied} --as kiosk --data '{}'`, '403: read only']]),
  ];
  const rows = [
    ...(base_url === undefined ? [[`${programName} token pos-terminal`, 'a token']] : calls),
    [`${programName} clients add till-9 --scope "${scopes?.[0] ?? 'orders:read'}"`, 'a new client'],
    [`${programName} clients describe pos-terminal "Till 2"`, 'revokes tokens'],
    [`${programName} --help`, 'all commands'],
  ];
  return `Go on:\n\n${indent(table(rows))}\n\nIn another folder, first:\n\n${indent(`export ${location}`)}`;
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}
