import { logUnreadable } from '../app/log';
import { startServer } from '../app/serve';
import type { RunningServer } from '../app/serve';
import { createAuthServer } from '../auth-server/index';
import type { AuthServer } from '../auth-server/index';
import { generationsFromUrl } from '../generation/from-url';
import { isLoopbackHost } from '../core/urls';
import { ConfigurationError } from '../index';
import type { GenerationSource } from '../generation/index';
import type { Logger } from '../index';
import type { Settings } from '../settings/settings';
import type { Console } from '../console/console';
import { openConsole } from './dev-console';
import { embeddedAddress } from './settings';

/** The embedded token server, listening. */
export interface RunningTokenServer {
  readonly auth: AuthServer;
  /** What the API reads: the configured source, or the log of the token server. */
  readonly generations: GenerationSource;
  /** Not with an admin token, which a page cannot send. */
  readonly console: Console | undefined;
  close(): Promise<void>;
}

/** Options of {@link startTokenServer}. */
export interface TokenServerOptions {
  /** Scopes that clients may have; `undefined`: any. */
  readonly scopes: readonly string[] | undefined;
  /** Makes the source of a URL. */
  readonly openSource?: typeof generationsFromUrl;
}

const NOT_IN_PRODUCTION =
  'NODE_ENV: got "production", where the embedded token server does not run; set TILLGATE_AUTH_URL to your authorization server';

/**
 * Starts the embedded token server, for development.
 *
 * @throws ConfigurationError in production, and when the source cannot be published to
 * @throws Error when the port or the data directory is not available
 */
export async function startTokenServer(
  settings: Settings,
  logger: Logger,
  { scopes, openSource = generationsFromUrl }: TokenServerOptions,
): Promise<RunningTokenServer> {
  if (settings.production) throw new ConfigurationError([NOT_IN_PRODUCTION]);
  const { host, port, url } = embeddedAddress(settings);
  const source = openGenerations(settings, logger, openSource);
  let auth: AuthServer | undefined;
  try {
    auth = await createAuthServer({
      issuer: url,
      audience: settings.audience,
      dataDir: settings.dataDir,
      scopes,
      generationSource: source,
      host,
      production: settings.production,
      rateLimit: settings.tokenRateLimit ?? false,
      logger,
      adminToken: settings.adminToken,
      maxTokenAgeSeconds: settings.maxTokenAgeSeconds,
      browserOrigins: originsOf(settings.baseUrl),
    });
    const generations = source ?? auth.generations;
    const onUnreadable = logUnreadable.bind(undefined, logger);
    const devConsole = settings.adminToken === undefined ? openConsole(settings, auth, generations, scopes) : undefined;
    const handler = devConsole ? devConsole.serve(auth.handler) : auth.handler;
    const server = await startServer(handler, { host, port, portVariable: 'TILLGATE_AUTH_PORT', onUnreadable });
    const parts = { server, auth, source, console: devConsole };
    return { auth, generations, console: devConsole, close: () => closeAll(parts) };
  } catch (error) {
    await auth?.close();
    await source?.close?.();
    throw error;
  }
}

/** Origins of the documentation page: a browser may call this machine by either name. */
function originsOf(baseUrl: string): string[] {
  const url = new URL(baseUrl);
  const hosts = isLoopbackHost(url.hostname) ? [url.hostname, '127.0.0.1', 'localhost'] : [url.hostname];
  return [...new Set(hosts)].map((hostname) => Object.assign(new URL(url), { hostname }).origin);
}

interface Parts {
  readonly server: RunningServer;
  readonly auth: AuthServer;
  readonly source: GenerationSource | undefined;
  readonly console: Console | undefined;
}

async function closeAll({ server, auth, source, console: devConsole }: Parts): Promise<void> {
  // Its event streams end only with the token server itself.
  await Promise.all([server.close(), auth.close(), devConsole?.close()]);
  await source?.close?.();
}

/**
 * Where the token server publishes and the API reads; `undefined`: the log of the token server, which both share.
 *
 * @throws ConfigurationError when the source cannot be published to
 */
function openGenerations(
  { generationSource }: Settings,
  logger: Logger,
  openSource: typeof generationsFromUrl,
): GenerationSource | undefined {
  if (generationSource === undefined) return undefined;
  const source = openSource(generationSource, { logger });
  if (source.append) return source;
  throw new ConfigurationError([
    'TILLGATE_GENERATIONS: got an http(s): address, which the embedded token server cannot publish to; expected redis(s): or postgres:; leave it out, or set TILLGATE_AUTH_URL',
  ]);
}
