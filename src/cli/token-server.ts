import { logUnreadable, startServer } from '@tillgate/app/internal';
import { authenticateOptions } from 'tillgate/env';
import type { Settings } from 'tillgate/env';
import type { GenerationSource } from 'tillgate/generations';
import { ConfigurationError } from 'tillgate';
import type { Logger } from 'tillgate';
import { createAuthServer } from './auth-server/index';
import type { AuthServer } from './auth-server/index';
import { createConsole } from './console/console';
import type { Console } from './console/console';
import { adviceOn } from './commands/explain';
import { apiSettings, embeddedAddress } from './settings';

/** The embedded token server, listening. */
interface RunningTokenServer {
  readonly auth: AuthServer;
  /** The log of the token server. */
  readonly generations: GenerationSource;
  /** Not with an admin token, which a page cannot send. */
  readonly console: Console | undefined;
  close(): Promise<void>;
}

const NOT_IN_PRODUCTION =
  'NODE_ENV: got "production", where the embedded token server does not run; set TILLGATE_AUTH_URL to your authorization server';
const OTHER_SOURCE =
  'TILLGATE_GENERATIONS: names another log than that of the embedded token server; leave it out, or set TILLGATE_AUTH_URL to your authorization server';

/**
 * Starts the embedded token server, for development.
 *
 * @param scopes - scopes that clients may have; `undefined`: any
 * @throws ConfigurationError in production, and when TILLGATE_GENERATIONS names another log
 * @throws Error when the port or the data directory is not available
 */
export async function startTokenServer(
  settings: Settings,
  logger: Logger,
  scopes: readonly string[] | undefined,
): Promise<RunningTokenServer> {
  const { production, generationSource, adminToken } = settings;
  if (production) throw new ConfigurationError([NOT_IN_PRODUCTION]);
  const { host, port, url } = embeddedAddress(settings);
  if (generationSource !== undefined && generationSource !== `${url}/generations`) {
    throw new ConfigurationError([OTHER_SOURCE]);
  }
  let auth: AuthServer | undefined;
  try {
    auth = await createAuthServer({
      issuer: url,
      audience: settings.audience,
      dataDir: settings.dataDir,
      scopes,
      host,
      rateLimit: settings.tokenRateLimit ?? false,
      logger,
      adminToken,
      maxTokenAgeSeconds: settings.maxTokenAgeSeconds,
    });
    const { generations } = auth;
    const devConsole = adminToken === undefined ? openConsole(settings, auth, generations, scopes) : undefined;
    const server = await startServer(devConsole?.serve(auth.handler) ?? auth.handler, {
      host,
      port,
      portVariable: 'TILLGATE_AUTH_PORT',
      onUnreadable: logUnreadable.bind(undefined, logger),
    });
    return {
      auth,
      generations,
      console: devConsole,
      async close() {
        // What the token server holds ends only with it.
        await Promise.all([server.close(), auth?.close(), devConsole?.close()]);
      },
    };
  } catch (error) {
    await auth?.close();
    throw error;
  }
}

/** The console of the token server, and of the API that trusts it. */
function openConsole(
  given: Settings,
  auth: AuthServer,
  generationSource: GenerationSource,
  scopes: readonly string[] | undefined,
): Console {
  const settings = apiSettings(given);
  const { baseUrl, audience, issuer = '', production } = settings;
  return createConsole({
    baseUrl,
    issuer,
    audience,
    production,
    scopes,
    clients: () => auth.list(),
    gate: { ...authenticateOptions(settings), generationSource },
    advise: (reason, token) => adviceOn(reason, token, settings),
  });
}
