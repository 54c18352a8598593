import type { ClientResource, ClientWithSecret } from '../auth-server/index';
import { parseUrl } from '../core/urls';
import { readBody } from '../token/http';
import type { Settings } from '../settings/settings';
import { CliError } from './command';
import type { CliIo } from './command';
import { embeddedAddress } from './settings';

/** An HTTP response, read to its end. */
export interface HttpResponse {
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
  url: string,
  request: {
    readonly method?: string;
    /** Bearer token. */
    readonly token?: string | undefined;
    /** Body. */
    readonly json?: string | undefined;
    /** Body. */
    readonly form?: Record<string, string>;
  },
): Promise<HttpResponse> {
  const { method = 'GET', token, json, form } = request;
  const origin = parseUrl(url)?.origin ?? url;
  let response: Response;
  let bytes: Buffer | undefined;
  try {
    response = await io.fetch(url, {
      method,
      headers: {
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(json !== undefined && { 'Content-Type': 'application/json' }),
      },
      body: form ? new URLSearchParams(form) : (json ?? null),
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    bytes = response.body ? await readBody(response.body, MAX_BODY_BYTES) : Buffer.alloc(0);
  } catch (error) {
    throw new CliError(
      `no response from ${origin} (${reasonOf(error)}); is it running? ${io.programName} dev starts both servers`,
    );
  }
  if (!bytes) throw new CliError(`the response from ${origin} is larger than ${MAX_BODY_BYTES / 1024 / 1024} MiB`);
  const { status, statusText, headers } = response;
  const text = new TextDecoder().decode(bytes);
  return { status, statusText, headers, text, body: parseJson(text) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * fetch says only "fetch failed"; what failed is the cause. Its other messages are not shown: one about a header quotes
 * the header, and with it a token.
 */
function reasonOf(error: unknown): string {
  const { cause, name } = error as { cause?: { code?: string; message?: string }; name?: string };
  return cause?.code ?? cause?.message ?? (name === 'TimeoutError' ? `none within ${TIMEOUT_MS / 1000} s` : 'not sent');
}

/** One line about a refusal: the `detail` of a problem (RFC 9457), or the `error_description` of RFC 6749. */
function explainRefusal({ status, statusText, body }: HttpResponse): string {
  const { code, detail, error, error_description } = (body ?? {}) as Record<string, unknown>;
  const said = [code ?? error, detail ?? error_description].filter((part) => typeof part === 'string').join(': ');
  return `${status} ${said || statusText}`;
}

/** Response of the token endpoint (RFC 6749 section 5.1). */
interface TokenResponse {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly scope: string;
}

/**
 * Requests a token at the token server of the settings (RFC 6749 section 4.4.2).
 *
 * @throws CliError when it is denied
 */
export async function requestToken(
  io: CliIo,
  settings: Settings,
  { clientId, secret, scope }: { readonly clientId: string; readonly secret: string; readonly scope: string },
): Promise<TokenResponse> {
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret, scope };
  const response = await send(io, `${tokenServerUrl(settings)}/connect/token`, { method: 'POST', form });
  if (response.status !== 200) throw new CliError(`no token for ${clientId}: ${explainRefusal(response)}`);
  return response.body as TokenResponse;
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
  settings: Settings,
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: readonly string[],
  body?: object,
): Promise<ClientResponse> {
  const json = body && JSON.stringify(body);
  const response = await send(io, clientsUrl(settings, path), { method, token: settings.adminToken, json });
  if (response.status >= 300) throw new CliError(explainRefusal(response));
  return response.body as ClientResponse;
}

/** Whether the token server knows a client; `undefined` where that cannot be found out. */
export async function hasClient(io: CliIo, settings: Settings, clientId: string): Promise<boolean | undefined> {
  try {
    const { status } = await send(io, clientsUrl(settings, [clientId]), { token: settings.adminToken });
    return status === 404 ? false : status === 200 || undefined;
  } catch {
    return undefined;
  }
}

function clientsUrl(settings: Settings, path: readonly string[]): string {
  return [tokenServerUrl(settings), 'clients', ...path.map(encodeURIComponent)].join('/');
}

/** `{auth_url}`, or the embedded token server. */
function tokenServerUrl(settings: Settings): string {
  return (settings.authUrl ?? settings.issuer ?? embeddedAddress(settings).url).replace(/\/$/, '');
}
