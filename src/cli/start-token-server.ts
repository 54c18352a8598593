import { SCOPES } from '../app/commerce/routes';
import { startServer } from '../app/index';
import { createAuthServer } from '../auth-server/index';
import { memoryGenerations } from '../generation/index';
import type { GenerationSource, Logger, Settings } from '../index';
import { embeddedAddress } from './embedded';

/** The embedded token server, listening. */
export interface RunningTokenServer {
  readonly url: string;
  /** Every change of a client credential is here as soon as it is on disk. */
  readonly generations: GenerationSource;
  close(): Promise<void>;
}

/**
 * Starts the embedded token server, for development.
 *
 * @throws Error when the port is not to be had, or the token server must not run like this
 */
export async function startTokenServer(settings: Settings, logger: Logger): Promise<RunningTokenServer> {
  const { host, port, url } = embeddedAddress(settings);
  const generations = memoryGenerations();
  const auth = await createAuthServer({
    issuer: url,
    audience: settings.audience,
    dataDir: settings.dataDir,
    scopes: SCOPES,
    generations,
    host,
    rateLimit: settings.tokenRateLimit ?? false,
    logger,
    ...(settings.adminToken !== undefined && { adminToken: settings.adminToken }),
  });
  try {
    const server = await startServer(auth.handler, { host, port, portVariable: 'TILLGATE_AUTH_PORT' });
    return {
      url,
      generations,
      async close() {
        // Its event streams end only with the token server itself.
        await Promise.all([server.close(), auth.close()]);
      },
    };
  } catch (error) {
    await auth.close();
    throw error;
  }
}
