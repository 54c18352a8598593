import { table } from './command';
import type { ClientWithSecret } from './token-server';

/** What `dev` prints once it is ready. */
export interface DevReport {
  readonly ready_ms: number;
  readonly base_url: string;
  readonly auth_url: string;
  /** Whether the token server is the embedded one. */
  readonly embedded: boolean;
  readonly data_dir: string;
  readonly admin_url: string | undefined;
  /** Clients that were registered by this start, with their secrets. */
  readonly clients: readonly ClientWithSecret[];
  /** Whether keys and generations have been read; `/readyz` says what is missing. */
  readonly ready: boolean;
}

/**
 * The report as text. Only the first start shows secrets.
 *
 * @param app - the module of `--app`, whose routes are not known here
 */
export function banner(report: DevReport, programName: string, app: string | undefined): string {
  const parts = [
    report.ready
      ? `Tillgate is ready in ${report.ready_ms} ms`
      : `Tillgate listens, and waits for its authorization server: see ${report.base_url}/readyz`,
    addresses(report),
    ...(report.clients.length > 0 ? [secrets(report.clients)] : []),
    ...(report.embedded ? [tryIt(report, programName), goOn(programName, app)] : []),
    'Ctrl+C stops it.',
  ];
  return `\n${parts.join('\n\n')}\n`;
}

function addresses({ base_url, auth_url, embedded, data_dir, admin_url }: DevReport): string {
  return indent(
    table([
      ['API', base_url, '{base_url}'],
      [
        embedded ? 'token server' : 'issuer',
        auth_url,
        embedded ? `{auth_url}, clients and keys in ${data_dir}` : '{auth_url}',
      ],
      ...(admin_url === undefined ? [] : [['admin', admin_url, '/metrics, /livez, /readyz']]),
    ]),
  );
}

function secrets(clients: readonly ClientWithSecret[]): string {
  const rows = clients.map(({ client_id, client_secret, scope }) => [client_id, client_secret, scope]);
  return `Registered for you; the secrets are shown only now:\n\n${indent(table(rows))}`;
}

/** One line of plain shell that works when pasted: token, then call. */
function tryIt({ clients, base_url, auth_url }: DevReport, programName: string): string {
  const till = clients.find(({ client_id }) => client_id === 'pos-terminal');
  const fetched = till
    ? `curl -s ${auth_url}/connect/token -d grant_type=client_credentials -d client_id=${till.client_id} -d client_secret=${till.client_secret} -d scope=orders:read | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/'`
    : `${programName} token pos-terminal`;
  const line = `TOKEN=$(${fetched}); curl -i ${base_url}/v1/orders -H "Authorization: Bearer $TOKEN"`;
  return `Try it, in another terminal:\n\n${indent(line)}`;
}

function goOn(programName: string, app: string | undefined): string {
  const rows = [
    [`${programName} call GET /v1/orders --as pos-terminal`, app === undefined ? '200' : 'or a path of your app'],
    ...(app === undefined
      ? [[`${programName} call POST /v1/orders --as kiosk --data '{}'`, '403: it may only read']]
      : []),
    [`${programName} clients describe pos-terminal "Till 2"`, 'its earlier tokens are refused from here on'],
    [`${programName} --help`, 'all commands'],
  ];
  return `Go on:\n\n${indent(table(rows))}`;
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}
