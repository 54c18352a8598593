import { createLog } from '../../app/index';
import type { AppOptions, DocsClient, RunningApi } from '../../app/index';
import type { AuthServer, ClientRegistration, ClientWithSecret } from '../../auth-server/index';
import { authenticateOptions } from '../../settings/authenticate-options';
import type { Logger } from '../../index';
import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import { banner } from '../banner';
import type { CommandContext, CommandOptions } from '../command';
import { credentialStore } from '../credentials';
import type { CredentialStore } from '../credentials';
import { EXIT, print } from '../command';
import { startHosted } from '../load-app';
import { rateLimitRedis } from '../rate-limit-redis';
import { apiSettings, isEmbedded, withFreePorts } from '../settings';
import { startTokenServer } from '../start-token-server';
import type { RunningTokenServer } from '../start-token-server';

/** How long the report waits for keys and generations of an authorization server elsewhere. */
const PATIENCE_MS = 3_000;

const FAMILIES = ['orders', 'items', 'menus', 'payments'];

/** A till that reads and writes, and a kiosk that only reads: enough to see a 200, a 403 and a discarded token. */
const DEMO_CLIENTS: readonly ClientRegistration[] = [
  {
    client_id: 'pos-terminal',
    description: 'Demo till',
    scope: FAMILIES.flatMap((family) => [`${family}:read`, `${family}:write`]).join(' '),
  },
  { client_id: 'kiosk', description: 'Demo kiosk', scope: FAMILIES.map((family) => `${family}:read`).join(' ') },
];

/** `tillgate dev`: the API and, unless an authorization server is configured, the embedded token server. */
export async function dev(context: CommandContext, options: CommandOptions): Promise<number> {
  const { io } = context;
  const settings = readSettings(await withFreePorts(io.env));
  const logger = createLog({ level: settings.logLevel, destination: io.stderr });
  const tokens = isEmbedded(settings) ? await startTokenServer(settings, logger) : undefined;
  let api: RunningApi | undefined;
  try {
    api = await startHosted(options.app, apiOptions(context, settings, tokens, logger));
    const clients = tokens ? await registerDemoClients(tokens.auth, credentialStore(settings)) : [];
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

/** The gate and the embedded token server share one source in memory: a change takes effect immediately. */
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
    gate: tokens ? { ...gate, generationSource: tokens.generations } : gate,
    connectToRedis: rateLimitRedis(settings),
    docs: tokens && { client: () => demoClient(given) },
  };
}

/**
 * Registers the demo clients at the first start and returns them with their secrets; later starts return none. A
 * client that is registered already keeps its secret.
 */
async function registerDemoClients(
  tokens: Pick<AuthServer, 'list' | 'register'>,
  credentials: CredentialStore,
): Promise<readonly ClientWithSecret[]> {
  if (!(await credentials.isNew())) return [];
  const known = new Set(tokens.list().map(({ client_id }) => client_id));
  const registered: ClientWithSecret[] = [];
  for (const demo of DEMO_CLIENTS) {
    if (known.has(demo.client_id)) continue;
    const client = await tokens.register(demo);
    await credentials.set(client.client_id, client);
    registered.push(client);
  }
  return registered;
}

/** The client that the documentation page is filled in with. */
async function demoClient(settings: Settings): Promise<DocsClient | undefined> {
  const [{ client_id: clientId } = { client_id: '' }] = DEMO_CLIENTS;
  const credential = await credentialStore(settings).get(clientId);
  return credential && { clientId, clientSecret: credential.client_secret, scopes: credential.scope.split(' ') };
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
