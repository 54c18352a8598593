import type { ClientWithSecret } from './auth-server/index';
import { escapeUnsafe, withoutSlash } from 'tillgate/internal';
import { table } from './command';

type NewClient = Pick<ClientWithSecret, 'client_id' | 'client_secret' | 'scope'>;

/** What `dev` prints once it is ready. */
interface DevReport {
  readonly ready_ms: number;
  readonly base_url: string;
  readonly auth_url: string;
  /** Whether the token server is the embedded one. */
  readonly embedded: boolean;
  readonly data_dir: string;
  readonly admin_url: string | undefined;
  readonly console_url?: string | undefined;
  readonly docs_url?: string | undefined;
  /** Clients that were registered by this start, with their secrets. */
  readonly clients: readonly NewClient[];
  /** Whether keys and generations have been read; `/readyz` says what is missing. */
  readonly ready: boolean;
}

/** Paths of the app that show what the gate does. */
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
 * @param location - the variable with which a command in any folder finds these servers
 */
export function banner(report: DevReport, programName: string, samples: Samples, location: string): string {
  const parts = [
    report.ready
      ? `Tillgate is ready in ${report.ready_ms} ms`
      : `Tillgate listens, and waits for its authorization server: see ${report.base_url}/readyz`,
    addresses(report),
    ...(report.clients.length > 0 ? [secrets(report.clients)] : []),
    ...(report.embedded ? [...tryIt(report, programName, samples), goOn(programName, samples, location)] : []),
    'Ctrl+C stops it.',
  ];
  return `\n${parts.join('\n\n')}\n`;
}

/** What `dev --token-server` prints once it is ready. */
interface TokenServerReport extends Pick<DevReport, 'ready_ms' | 'auth_url' | 'data_dir' | 'clients'> {
  /** `aud` of its tokens. */
  readonly audience: string;
  /** Scopes that clients may have; `undefined`: any. */
  readonly scopes: readonly string[] | undefined;
}

/** The report as text, with the variables of an API that trusts this token server. */
export function tokenServerBanner(report: TokenServerReport, programName: string, location: string): string {
  const { ready_ms, auth_url, data_dir, clients, audience, scopes } = report;
  const rows = [
    ['token server', auth_url, `{auth_url}, data in ${data_dir}`],
    ['audience', audience, 'aud of its tokens (TILLGATE_AUDIENCE)'],
  ];
  const variables = {
    TILLGATE_AUTH_URL: auth_url,
    TILLGATE_AUDIENCE: audience,
    TILLGATE_GENERATIONS: `${auth_url}/generations`,
  };
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const commands = [
    [`${programName} clients add till-9 --scope "${scopes?.[0] ?? 'orders:read'}"`, 'registers a client'],
    [`${programName} token pos-terminal`, 'a token'],
  ];
  const parts = [
    `The token server is ready in ${ready_ms} ms`,
    indent(table(rows)),
    'Scopes that clients may have:',
    indent(wrapped(scopes?.join(' ') ?? 'any; --scopes and --openapi name those of your API', COLUMNS).join('\n')),
    ...(clients.length > 0 ? [secrets(clients)] : []),
    'Your API trusts it with these variables:',
    indent(lines.join('\n')),
    'Go on, in another terminal:',
    indent(table(commands)),
    elsewhere(location),
    'Ctrl+C stops it.',
  ];
  return `\n${parts.join('\n\n')}\n`;
}

function addresses({ base_url, auth_url, embedded, data_dir, admin_url, console_url, docs_url }: DevReport): string {
  return indent(
    table([
      ['API', base_url, '{base_url}'],
      [embedded ? 'token server' : 'issuer', auth_url, embedded ? `{auth_url}, data in ${data_dir}` : '{auth_url}'],
      ...(docs_url === undefined ? [] : [['docs', docs_url, 'the contract, to try out']]),
      ...(console_url === undefined ? [] : [['console', console_url, 'clients and live requests']]),
      ...(admin_url === undefined ? [] : [['admin', admin_url, '/metrics, /livez, /readyz']]),
    ]),
  );
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
function tryIt({ clients, base_url, auth_url }: DevReport, programName: string, { allowed, scope }: Samples): string[] {
  if (allowed === undefined) return [];
  const till = clients.find(({ client_id }) => client_id === 'pos-terminal');
  const fetched = till
    ? `curl -s ${auth_url}/connect/token -d grant_type=client_credentials -d client_id=${till.client_id} -d client_secret=${till.client_secret} -d scope=${scope} | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/'`
    : `${programName} token pos-terminal`;
  const line = `TOKEN=$(${fetched}); curl -i ${withoutSlash(base_url)}${allowed} -H "Authorization: Bearer $TOKEN"`;
  return [`Try it, in another terminal:\n\n${indent(line)}`];
}

function goOn(programName: string, { allowed, denied }: Samples, location: string): string {
  const rows = [
    ...(allowed === undefined ? [] : [[`${programName} call GET ${allowed} --as pos-terminal`, '200']]),
    ...(denied === undefined
      ? []
      : [[`${programName} call POST ${denied} --as kiosk --data '{}'`, '403: it only reads']]),
    [`${programName} clients describe pos-terminal "Till 2"`, 'discards its tokens'],
    [`${programName} --help`, 'all commands'],
  ];
  return `Go on:\n\n${indent(table(rows))}\n\n${elsewhere(location)}`;
}

function elsewhere(location: string): string {
  return `In another folder, first:\n\n${indent(`export ${location}`)}`;
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}
