import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTillgate } from '../../test/all/setup/tillgate';
import { shoot } from '../../test/all/support/load';
import type { Shot } from '../../test/all/support/load';

/** `tillgate dev` in a process of its own, with a client that has a secret. */
export interface DevServers {
  readonly apiUrl: string;
  readonly authUrl: string;
  /** A token request of the demo kiosk, with its secret or another one. */
  tokenRequest(secret?: string): Shot;
  /** A request that gets 200. */
  orderRequest(): Promise<Shot>;
  /** SIGTERM; resolves when the process has ended. */
  stop(): Promise<void>;
}

interface Report {
  readonly base_url: string;
  readonly auth_url: string;
  readonly clients: readonly { client_id: string; client_secret: string }[];
}

export async function startDevServers(): Promise<DevServers> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tillgate-bench-'));
  const tillgate = await startTillgate<Report>('dev', {
    TILLGATE_PORT: '0',
    TILLGATE_AUTH_PORT: '0',
    TILLGATE_DATA_DIR: dataDir,
    TILLGATE_RATE_LIMIT: 'off',
    TILLGATE_LOG_LEVEL: 'warn',
  });
  const { base_url: apiUrl, auth_url: authUrl, clients } = tillgate.report;
  const kiosk = clients.find(({ client_id }) => client_id === 'kiosk');

  function tokenRequest(secret = kiosk?.client_secret ?? ''): Shot {
    const form = { grant_type: 'client_credentials', client_id: 'kiosk', client_secret: secret, scope: 'orders:read' };
    return {
      url: `${authUrl}/connect/token`,
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(form).toString(),
    };
  }

  return {
    apiUrl,
    authUrl,
    tokenRequest,
    async orderRequest() {
      const { access_token } = JSON.parse((await shoot(tokenRequest())).body) as { access_token: string };
      return { url: `${apiUrl}/v1/orders`, headers: { Authorization: `Bearer ${access_token}` } };
    },
    async stop() {
      await tillgate.stop();
      await rm(dataDir, { recursive: true });
    },
  };
}
