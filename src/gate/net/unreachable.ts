import { isLoopbackHost } from '../core/urls';
import { DISPATCHER } from './transport';

/** What a connection that failed probably lacks, after the text that says so; empty where nothing shows. */
export function connectionHint(url: string, code: string, hasOwnFetch: boolean, node: NodeProcess = process): string {
  if (/SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY)/.test(code)) return PRIVATE_CA;
  const { protocol, hostname } = new URL(url);
  if (isLoopbackHost(hostname)) return code === 'ECONNREFUSED' ? IN_A_CONTAINER : '';
  if (hasOwnFetch || !NO_ROUTE.test(code)) return '';
  const { env, version, allowedNodeEnvironmentFlags: flags } = node;
  const variable = protocol.replace(':', '_proxy');
  const name = [variable, variable.toUpperCase()].find((one) => env[one]);
  const direct = (env['no_proxy'] || env['NO_PROXY'] || '').split(/[\s,]+/).filter(Boolean);
  const isDirect = direct.some((part) => part === '*' || `.${hostname}`.endsWith(part.replace(/^\*?\.?/, '.')));
  const dispatcher = Reflect.get(globalThis, DISPATCHER) as object | undefined;
  // An app may have set one that follows proxies.
  if (name === undefined || isDirect || (dispatcher?.constructor.name ?? 'Agent') !== 'Agent') return '';
  // Node 24 before 24.5 has no such flag, and its fetch follows the variable.
  const canFollow = flags.has('--use-env-proxy') || version.startsWith('v24.');
  if (!canFollow)
    return `; ${name} is set, and Node ${version} follows no proxy variable: docs/operations.md, "Connections to the authorization server"`;
  return env['NODE_USE_ENV_PROXY'] ? '' : `; ${name} is set, which Node follows with NODE_USE_ENV_PROXY=1 only`;
}

/** What decides which proxies a process follows. */
type NodeProcess = Pick<typeof process, 'env' | 'version' | 'allowedNodeEnvironmentFlags'>;

/** Of hosts that cannot be reached directly. */
const NO_ROUTE = /^(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;
const PRIVATE_CA =
  '; Node knows no CA of this certificate: set NODE_EXTRA_CA_CERTS to the PEM file of the private CA or development certificate';
const IN_A_CONTAINER =
  '; in a container this host is the container itself: set authUrl (TILLGATE_AUTH_URL) to the URL by which it reaches the server';
