import type { Settings } from '../index';
import { embeddedAddress } from './embedded';
import { CliError } from './exit';
import { explainRefusal, send } from './http';
import type { CliIo } from './io';

/** Answer of the token endpoint (RFC 6749 section 5.1). */
export interface TokenAnswer {
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

/** A client credential at the moment when it gets a secret. */
export interface ClientWithSecret extends Client {
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
  /** @throws CliError when the token is denied */
  requestToken(request: TokenRequest): Promise<TokenAnswer>;
  /**
   * Calls the registration API under `/clients`; `path` is `''` or begins with a slash.
   *
   * @throws CliError when it refuses
   */
  clients<Answer>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Answer>;
}

/** Makes the client of the token server. */
export function tokenServer(io: CliIo, settings: Settings): TokenServer {
  const url = settings.authUrl ?? settings.issuer ?? embeddedAddress(settings).url;
  const base = url.replace(/\/$/, '');
  return {
    url,
    async requestToken({ clientId, secret, scope }) {
      const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret, scope };
      const answer = await send(io, `${base}/connect/token`, { method: 'POST', body: new URLSearchParams(form) });
      if (answer.status !== 200) throw new CliError(`no token for ${clientId}: ${explainRefusal(answer)}`);
      return answer.body as TokenAnswer;
    },
    async clients<Answer>(method: string, path: string, body?: object) {
      const answer = await send(io, `${base}/clients${path}`, {
        method,
        headers: {
          ...(body && { 'Content-Type': 'application/json' }),
          ...(settings.adminToken !== undefined && { Authorization: `Bearer ${settings.adminToken}` }),
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      if (answer.status >= 300) throw new CliError(explainRefusal(answer));
      return answer.body as Answer;
    },
  };
}

/** Path of one client below `/clients`. */
export function clientPath(clientId: string): string {
  return `/${encodeURIComponent(clientId)}`;
}
