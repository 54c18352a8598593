import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { authenticateOptions, type Settings } from 'tillgate/env';
import { ConfigurationError, type Logger } from 'tillgate';
import { adviceOn } from './commands/explain';
import { createAuthServer, type AuthServer } from './auth-server/index';
import { CliError } from './command';
import { createConsole, type Console, type ConsoleOptions } from './console/console';
import { apiSettings, embeddedAddress, firstAudience, type Address } from './settings';

/** The embedded token server, listening. */
interface RunningTokenServer {
  readonly auth: AuthServer;
  /** URL of the console; none with an admin token, which a page cannot send. */
  readonly consoleUrl: string | undefined;
  close(): Promise<void>;
}

/** What the console shows of the API. */
export type ApiFacts = Pick<ConsoleOptions, 'scopes' | 'routes' | 'docsUrl' | 'command' | 'call'>;

const NOT_IN_PRODUCTION =
  'NODE_ENV: got "production", where the embedded token server does not run; set TILLGATE_AUTH_URL to your authorization server';
const OTHER_SOURCE =
  'TILLGATE_GENERATIONS: names another log than that of the embedded token server; leave it out, or set TILLGATE_AUTH_URL to your authorization server';

/**
 * Starts the embedded token server, for development.
 *
 * @param api - what the console shows of the API; clients may have its scopes
 * @throws ConfigurationError in production, and when TILLGATE_GENERATIONS names another log
 * @throws Error when the port or the data directory is not available
 */
export async function startTokenServer(settings: Settings, logger: Logger, api: ApiFacts): Promise<RunningTokenServer> {
  const { production, generationSource, adminToken } = settings;
  if (production) throw new ConfigurationError([NOT_IN_PRODUCTION]);
  const address = embeddedAddress(settings);
  const { host, url } = address;
  if (generationSource !== undefined && generationSource !== `${url}/generations`) {
    throw new ConfigurationError([OTHER_SOURCE]);
  }
  const auth = await createAuthServer({
    issuer: url,
    audience: firstAudience(settings),
    dataDir: settings.dataDir,
    scopes: api.scopes,
    host,
    rateLimit: settings.tokenRateLimit ?? false,
    logger,
    adminToken,
    maxTokenAgeSeconds: settings.maxTokenAgeSeconds,
  });
  const devConsole = adminToken === undefined ? openConsole(settings, auth, logger, api) : undefined;
  const listening = listen(devConsole?.serve(auth.handler) ?? auth.handler, address);
  const stop = await listening.catch(async (error: unknown) => {
    await auth.close();
    throw error;
  });
  return {
    auth,
    consoleUrl: devConsole && `${url}/console`,
    async close() {
      // What the token server holds ends only with it.
      await Promise.all([stop(), auth.close(), devConsole?.close()]);
    },
  };
}

/**
 * Listens; returns what stops it. What was registered survives a kill, so open requests need not finish.
 *
 * @throws CliError that says what to change
 */
async function listen(handler: RequestListener, { host, port, url }: Address): Promise<() => Promise<void>> {
  const server = createServer(handler);
  await once(server.listen(port, host), 'listening').catch(({ code, message }: NodeJS.ErrnoException) => {
    const taken = 'another process does; stop it, or set TILLGATE_AUTH_PORT to a free port';
    throw new CliError(`cannot listen on ${url}: ${code === 'EADDRINUSE' ? taken : message}`);
  });
  return async () => {
    // The response that says why it closes is still on its way.
    const late = setTimeout(() => server.closeAllConnections(), OPEN_REQUESTS_MS);
    await once(server.close(), 'close');
    clearTimeout(late);
  };
}

/** How long requests that are open when it closes get. */
const OPEN_REQUESTS_MS = 250;

/** The console of the token server, and of the API that trusts it. */
function openConsole(given: Settings, auth: AuthServer, logger: Logger, api: ApiFacts): Console {
  const settings = apiSettings(given);
  const { baseUrl, issuer = '', production } = settings;
  return createConsole({
    ...api,
    baseUrl,
    issuer,
    audience: firstAudience(settings),
    production,
    clients: () => auth.list(),
    gate: { ...authenticateOptions(settings), generationSource: auth.generations },
    advise: (reason, token) => adviceOn(reason, token, settings),
    onRefusal({ status, method, path, client_id, reason, why }) {
      logger.info({ client: client_id, reason, detail: why?.fix }, `${status} ${method} ${path}`);
    },
  });
}
