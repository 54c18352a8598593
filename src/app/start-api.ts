import { createAdminApp, createMetrics } from './admin';
import { createApp } from './create-app';
import type { App, AppOptions } from './create-app';
import { createLog, logUnreadable } from './log';
import { problemTypesOf } from './pages';
import { startServer } from './serve';
import type { RunningServer } from './serve';

/** The API, listening. */
export interface RunningApi {
  readonly app: App;
  /** URL of the server: `http://HOST:PORT`. */
  readonly url: string;
  /** URL of the admin port, if any. */
  readonly adminUrl: string | undefined;
  /** Drains and stops: `/readyz` responds with 503 immediately, open requests finish, the admin port closes last. */
  close(): Promise<void>;
}

/**
 * Starts the API, and the admin port if the settings have one.
 *
 * @param make - makes the app; default: the scaffold
 * @throws Error when a port is not available; nothing is left open
 */
export async function startApi(
  options: AppOptions,
  make: (options: AppOptions) => App | Promise<App> = createApp,
): Promise<RunningApi> {
  const { host, port, adminPort, logLevel } = options.settings;
  const { logger = createLog({ level: logLevel }) } = options;
  const metrics = adminPort === undefined ? undefined : createMetrics(() => app.readiness().ready);
  const app = await make({
    ...options,
    logger,
    onRequest(event) {
      metrics?.observe(event);
      options.onRequest?.(event);
    },
  });
  let api: RunningServer | undefined;
  let admin: RunningServer | undefined;

  async function close(): Promise<void> {
    app.drain();
    await api?.close();
    await admin?.close();
    await app.close();
    metrics?.close();
  }

  try {
    const problemTypes = problemTypesOf(options.settings.baseUrl);
    const common = { host, problemTypes, onUnreadable: logUnreadable.bind(undefined, logger) };
    api = await startServer(app.handler, { ...common, port, portVariable: 'TILLGATE_PORT' });
    if (adminPort !== undefined) {
      const adminApp = createAdminApp(() => app.readiness(), metrics, problemTypes);
      admin = await startServer(adminApp, { ...common, port: adminPort, portVariable: 'TILLGATE_ADMIN_PORT' });
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { app, url: api.url, adminUrl: admin?.url, close };
}
