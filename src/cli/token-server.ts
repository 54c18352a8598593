import type { Settings } from '../settings/settings';
import { CliError } from './command';
import { explainRefusal, send } from './http';
import type { CliIo } from './io';
import { embeddedAddress } from './settings';

/** Response of the token endpoint (RFC 6749 section 5.1). */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly scope: string;
}

/** A client credential as the token server shows it. */
export interface Client {
  readonly client_id: string;
  readonly description: string;
  readonly scope: string;
  readonly disabled: boolean;
  readonly generation: number;
}

/** Where a change is. */
export interface Published {
  /** Whether the generation source of the token server has it; `undefined`: it does not say. */
  readonly published?: boolean;
}

/** A client credential after a change. */
export type ChangedClient = Client & Published;

/** A client credential at the moment when it gets a secret. */
export interface ClientWithSecret extends ChangedClient {
  readonly client_secret: string;
}

/** What is sent to the token endpoint (RFC 6749 section 4.4.2). */
export interface TokenRequest {
  readonly clientId: string;
  readonly secret: string;
  readonly scope: string;
}

/** The token server of the settings: `{auth_url}`, or the embedded one. */
export interface TokenServer {
  readonly url: string;
  /** `undefined` where that cannot be found out. */
  hasClient(clientId: string): Promise<boolean | undefined>;
  /** @throws CliError when the token is denied */
  requestToken(request: TokenRequest): Promise<TokenResponse>;
  /**
   * Calls the registration API under `/clients`; `path` is `''` or begins with a slash.
   *
   * @throws CliError when it refuses
   */
  clients<Body>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Body>;
}

/** Makes the HTTP client of the token server. */
export function tokenServer(io: CliIo, settings: Settings): TokenServer {
  const url = settings.authUrl ?? settings.issuer ?? embeddedAddress(settings).url;
  const base = url.replace(/\/$/, '');
  const authorization = settings.adminToken !== undefined && { Authorization: `Bearer ${settings.adminToken}` };
  return {
    url,
    async hasClient(clientId) {
      const lookUp = send(io, `${base}/clients${clientPath(clientId)}`, { headers: { ...authorization } });
      const status = await lookUp.then(
        (response) => response.status,
        () => undefined,
      );
      return status === 404 ? false : status === 200 || undefined;
    },
    async requestToken({ clientId, secret, scope }) {
      const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret, scope };
      const response = await send(io, `${base}/connect/token`, { method: 'POST', body: new URLSearchParams(form) });
      if (response.status !== 200) throw new CliError(`no token for ${clientId}: ${explainRefusal(response)}`);
      return response.body as TokenResponse;
    },
    async clients<Body>(method: string, path: string, body?: object) {
      const response = await send(io, `${base}/clients${path}`, {
        method,
        headers: {
          ...(body && { 'Content-Type': 'application/json' }),
          ...authorization,
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      if (response.status >= 300) throw new CliError(explainRefusal(response));
      return response.body as Body;
    },
  };
}

/** Path of one client below `/clients`. */
export function clientPath(clientId: string): string {
  return `/${encodeURIComponent(clientId)}`;
}
