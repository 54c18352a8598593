import { createClient, TokenRequestError, type IssuedToken } from '@tillgate/client';
import type { ClientResource, ClientWithSecret } from './auth-server/index';
import { readSettings, type Settings } from 'tillgate/env';
import { attempt, discoverEndpoint, isSecureUrl, readBody } from 'tillgate/internal';
import { CliError, usageError, type CliIo } from './command';
import { embeddedAddress, usesEmbedded } from './settings';

/** An HTTP response, read to its end. */
export interface HttpResponse {
  /** Method and URL of the request. */
  readonly request: string;
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON, or `undefined` if it is not JSON. */
  readonly body: unknown;
}

const TIMEOUT_MS = 15_000;
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/**
 * Sends a request.
 *
 * @throws CliError when there is no response, or one that is too large
 */
export async function send(
  io: CliIo,
  settings: Settings,
  url: string,
  request: {
    readonly method?: string;
    /** Bearer token. */
    readonly token?: string | undefined;
    /** Body. */
    readonly json?: string | undefined;
    /** Further headers, by lower-case names; one of the same name counts more. */
    readonly headers?: Readonly<Record<string, string>>;
  },
): Promise<HttpResponse> {
  const { method = 'GET', token, json } = request;
  let response: Response;
  let bytes: Buffer | undefined;
  try {
    response = await io.fetch(url, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...request.headers,
      },
      body: json ?? null,
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    bytes = response.body ? await readBody(response.body, MAX_BODY_BYTES) : Buffer.alloc(0);
  } catch (error) {
    throw noResponse(io, settings, url, reasonOf(error));
  }
  if (!bytes)
    throw new CliError(`the response from ${new URL(url).origin} is larger than ${MAX_BODY_BYTES / 1024 / 1024} MiB`);
  const { status, statusText, headers } = response;
  const text = new TextDecoder().decode(bytes);
  const body = attempt(() => JSON.parse(text) as unknown);
  return { request: `${method} ${url}`, status, statusText, headers, text, body };
}

/** Says what starts the server of a URL, and what sets its address. */
function noResponse({ programName }: CliIo, settings: Settings, url: string, reason: string): CliError {
  const origin = attempt(() => new URL(url).origin) ?? url;
  const starts = `${programName} dev starts both servers`;
  const ownServer = `${starts}; dev --auth-port, TILLGATE_AUTH_PORT or TILLGATE_AUTH_URL`;
  const tokenServer = usesEmbedded(settings) ? ownServer : 'TILLGATE_AUTH_URL';
  const isApi = url.startsWith(settings.baseUrl);
  const names = isApi ? `${starts}; dev --port, TILLGATE_PORT or TILLGATE_BASE_URL` : tokenServer;
  return new CliError(`no response from ${origin} (${reason}); is it running? ${names} sets its address`);
}

/**
 * fetch says only "fetch failed"; what failed is the cause. Its other messages are not shown: one about a header quotes
 * the header, and with it a token.
 */
function reasonOf(error: unknown): string {
  const { cause, name } = error as { cause?: { code?: string; message?: string }; name?: string };
  return cause?.code ?? cause?.message ?? (name === 'TimeoutError' ? `none within ${TIMEOUT_MS / 1000} s` : 'not sent');
}

/**
 * What a command that was refused says: which command helps, where one does; else the `detail` of a problem (RFC 9457), or the
 * `error_description` of RFC 6749; else status and request.
 */
function explainRefusal({ programName }: CliIo, response: HttpResponse, clientId: string): string {
  const { request, status, statusText } = response;
  const body = Object(response.body) as Record<string, unknown>;
  const said = body['detail'] ?? body['code'] ?? body['error_description'] ?? body['error'];
  switch (body['code']) {
    case 'not_found':
      return `no client has the id ${clientId}; ${programName} clients list shows those that are registered`;
    case 'client_exists':
      return `the id ${clientId} is taken: choose another, or give that client a new secret with ${programName} clients rotate ${clientId}`;
    case 'missing_token':
    case 'invalid_token':
      return 'the token server asks for its admin token: set TILLGATE_ADMIN_TOKEN to the one that it was started with';
    default:
      return typeof said === 'string' ? said : `${request}: ${`${status} ${statusText}`.trimEnd()}`;
  }
}

/** What a response without a token is, by the code of its error. */
const UNUSABLE: Readonly<Record<string, string>> = {
  ERR_REDIRECT: 'a redirect, which no token request follows',
  ERR_RESPONSE: 'a response without a bearer token',
};

/** Response of the token endpoint (RFC 6749 section 5.1). */
type TokenResponse = IssuedToken['response'] & { readonly access_token: string };

/** How documents of the authorization server are fetched: like the gate does. */
export function documentOf(
  { fetch }: CliIo,
  { issuer = '', authUrl = issuer, allowHttp }: Settings,
): Parameters<typeof discoverEndpoint>[1] {
  return {
    issuer,
    authUrl,
    fetch,
    signal: AbortSignal.timeout(5_000),
    maxBytes: 1_048_576,
    checkUrl(url) {
      const { username, password } = new URL(url);
      if (username !== '' || password !== '' || (!allowHttp && !isSecureUrl(url))) throw new TypeError('not https');
    },
  };
}

/** `token_endpoint` of the metadata; the embedded token server keeps its path. */
async function tokenEndpoint(io: CliIo, settings: Settings): Promise<string> {
  if (usesEmbedded(settings)) return `${tokenServerUrl(settings)}/connect/token`;
  return discoverEndpoint('token_endpoint', documentOf(io, settings)).catch(({ message }: Error) => {
    const advice = 'check TILLGATE_AUTH_URL, and TILLGATE_ISSUER, which its metadata must name to the byte';
    throw new CliError(`no token endpoint: ${message}; ${advice}`);
  });
}

/**
 * Requests a token at the token server of the settings (RFC 6749 section 4.4.2).
 *
 * @param request - `scope` may be absent where the server has scopes of its own for a client
 * @throws CliError when it is denied
 */
export async function requestToken(
  io: CliIo,
  settings: Settings,
  request: { readonly clientId: string; readonly secret: string; readonly scope: string | undefined },
): Promise<TokenResponse> {
  const { clientId, secret: clientSecret, scope } = request;
  const tokenUrl = await tokenEndpoint(io, settings);
  const { baseUrl } = settings;
  try {
    const client = createClient({ tokenUrl, clientId, clientSecret, scope, baseUrl, auth: 'post', fetch: io.fetch });
    return (await client.token()).response as TokenResponse;
  } catch (error) {
    if (!(error instanceof TokenRequestError)) throw usageError((error as Error).message);
    if (error.status === undefined) throw noResponse(io, settings, tokenUrl, error.code ?? 'not sent');
    const advice =
      error.error === 'invalid_client' && usesEmbedded(settings)
        ? ` (not registered, disabled, or another secret; ${io.programName} clients rotate ${clientId} makes a new one)`
        : '';
    const said = error.description ?? error.error ?? `POST ${tokenUrl}: ${error.status}, ${UNUSABLE[error.code ?? '']}`;
    throw new CliError(`no token for ${clientId}: ${said}${advice}`);
  }
}

/** A response of the registration API: each request gets some of it. */
type ClientResponse = ClientWithSecret & {
  readonly clients: readonly ClientResource[];
  readonly token?: TokenResponse;
};

/**
 * Calls the registration API of the token server.
 *
 * @param path - segments below `/clients`
 * @throws CliError when it refuses
 */
export async function callClients(
  io: CliIo,
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: readonly string[],
  body?: object,
): Promise<ClientResponse> {
  const settings = readSettings(io.env);
  const url = [tokenServerUrl(settings), 'clients', ...path.map(encodeURIComponent)].join('/');
  const json = body && JSON.stringify(body);
  const response = await send(io, settings, url, { method, token: settings.adminToken, json });
  if (response.status >= 300) {
    const { client_id: clientId = path[0] ?? '' } = Object(body) as { readonly client_id?: string };
    throw new CliError(explainRefusal(io, response, clientId));
  }
  return response.body as ClientResponse;
}

/** `{auth_url}`, or the embedded token server. */
function tokenServerUrl(settings: Settings): string {
  return (settings.authUrl ?? settings.issuer ?? embeddedAddress(settings).url).replace(/\/$/, '');
}
