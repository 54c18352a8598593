import { SCOPES } from '../app/commerce/routes';
import { startServer } from '../app/index';
import { createAuthServer } from '../auth-server/index';
import type { AuthServer } from '../auth-server/index';
import { memoryGenerations } from '../generation/index';
import { ConfigurationError } from '../index';
import type { GenerationSource, Logger, Settings } from '../index';
import { embeddedAddress } from './embedded';

/** The embedded token server, listening. */
export interface RunningTokenServer {
  readonly auth: AuthServer;
  /** Every change of a client credential is here as soon as it is on disk. */
  readonly generations: GenerationSource;
  close(): Promise<void>;
}

const NOT_IN_PRODUCTION =
  'NODE_ENV: got "production", where the embedded token server does not run; set TILLGATE_AUTH_URL to your authorization server';

/**
 * Starts the embedded token server, for development.
 *
 * @throws ConfigurationError in production
 * @throws Error when the port or the data directory is not to be had
 */
export async function startTokenServer(settings: Settings, logger: Logger): Promise<RunningTokenServer> {
  if (settings.production) throw new ConfigurationError([NOT_IN_PRODUCTION]);
  const { host, port, url } = embeddedAddress(settings);
  const generations = memoryGenerations();
  const auth = await createAuthServer({
    issuer: url,
    audience: settings.audience,
    dataDir: settings.dataDir,
    scopes: SCOPES,
    generations,
    host,
    production: settings.production,
    rateLimit: settings.tokenRateLimit ?? false,
    logger,
    adminToken: settings.adminToken,
  });
  try {
    const server = await startServer(auth.handler, { host, port, portVariable: 'TILLGATE_AUTH_PORT' });
    return {
      auth,
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
