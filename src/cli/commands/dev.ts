import type { AppOptions, DocsClient, RunningApi } from '../../app/index';
import { withoutSlash } from '../../core/urls';
import { authenticateOptions } from '../../settings/authenticate-options';
import type { Logger } from '../../index';
import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import { banner } from '../banner';
import type { CommandContext, CommandOptions } from '../command';
import { credentialStore } from '../credentials';
import { EXIT, print } from '../command';
import { DEMO_TILL, registerDemoClients, scopesOf } from '../demo-clients';
import { startHosted } from '../load-app';
import type { Observe } from '../load-app';
import { openLog } from '../log';
import { rateLimitRedis } from '../rate-limit-redis';
import { apiSettings, isEmbedded, withFreePorts } from '../settings';
import { startTokenServer } from '../start-token-server';
import type { RunningTokenServer } from '../start-token-server';
import { runWatched } from '../watch';
import { devTokenServer } from './dev-token-server';

/** How long the report waits for keys and generations of an authorization server elsewhere. */
const PATIENCE_MS = 3_000;

/** `tillgate dev`: the API and, unless an authorization server is configured, the embedded token server. */
export async function dev(context: CommandContext, options: CommandOptions): Promise<number> {
  if (options.watch) return runWatched(context.io);
  return options.tokenServer ? devTokenServer(context, options) : devBoth(context, options);
}

async function devBoth(context: CommandContext, options: CommandOptions): Promise<number> {
  const { io } = context;
  const settings = readSettings(await withFreePorts(io.env));
  const scopes = scopesOf(options);
  const logger = openLog(io, options, settings);
  const tokens = isEmbedded(settings) ? await startTokenServer(settings, logger, { scopes }) : undefined;
  let api: RunningApi | undefined;
  try {
    const docsUrl = docsUrlOf(settings, options);
    const watching = tokens?.console;
    const observe: Observe | undefined = watching && ((handler) => watching.observe(handler, docsUrl));
    api = await startHosted(options.app, apiOptions(context, settings, tokens, logger), observe);
    const clients = tokens ? await registerDemoClients(tokens.auth, credentialStore(settings), scopes) : [];
    const ready = await isReadyWithin(api.app.gate.ready(), PATIENCE_MS);
    const { baseUrl, authUrl, issuer } = apiSettings(settings);
    const report = {
      // Since the start of the process: loading the program counts.
      ready_ms: Math.round(process.uptime() * 1000),
      base_url: baseUrl,
      auth_url: authUrl ?? issuer ?? '',
      embedded: tokens !== undefined,
      data_dir: settings.dataDir,
      admin_url: api.adminUrl,
      console_url: tokens?.console && `${authUrl}/console`,
      docs_url: docsUrl,
      clients,
      ready,
    };
    print(context, report, banner(report, io.programName, options.app));
    await io.untilStopped();
  } finally {
    // Together: each may wait for its own drain deadline.
    await Promise.all([api?.close(), tokens?.close()]);
  }
  return EXIT.ok;
}

/** The documentation page of the scaffold. */
function docsUrlOf(settings: Settings, { app }: CommandOptions): string | undefined {
  if (app !== undefined || settings.production) return undefined;
  return `${withoutSlash(apiSettings(settings).baseUrl)}/docs`;
}

/** The gate reads the log of the embedded token server in this process: a change takes effect immediately. */
function apiOptions(
  { io }: CommandContext,
  given: Settings,
  tokens: RunningTokenServer | undefined,
  logger: Logger,
): AppOptions {
  const settings = apiSettings(given);
  const gate = { ...authenticateOptions(settings), fetch: io.fetch };
  return {
    settings,
    logger,
    gate: tokens ? { ...gate, generationSource: tokens.generations, onDecision: tokens.console?.onDecision } : gate,
    connectToRedis: rateLimitRedis(settings),
    docs: tokens && { client: () => demoClient(given) },
  };
}

/** The client that the documentation page is filled in with. */
async function demoClient(settings: Settings): Promise<DocsClient | undefined> {
  const credential = await credentialStore(settings).get(DEMO_TILL);
  return (
    credential && {
      clientId: DEMO_TILL,
      clientSecret: credential.client_secret,
      scopes: credential.scope.split(' '),
    }
  );
}

async function isReadyWithin(ready: Promise<void>, patienceMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, patienceMs, false)));
  try {
    return await Promise.race([ready.then(() => true), patience]);
  } finally {
    clearTimeout(timer);
  }
}
