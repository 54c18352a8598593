import { createLog, startApi } from '../../app/index';
import type { AppOptions } from '../../app/index';
import { authenticateOptions, readSettings } from '../../index';
import type { Logger, Settings } from '../../index';
import { print } from '../answer';
import { banner } from '../banner';
import type { CommandContext } from '../command';
import { credentialStore } from '../credentials';
import { registerDemoClients } from '../demo-clients';
import { isEmbedded } from '../embedded';
import { EXIT } from '../exit';
import { withFreePorts } from '../free-ports';
import { rateLimitRedis } from '../rate-limit-redis';
import { apiSettings } from '../settings';
import { startTokenServer } from '../start-token-server';
import type { RunningTokenServer } from '../start-token-server';

/** How long the report waits for keys and generations of an authorization server elsewhere. */
const PATIENCE_MS = 3_000;

/** `tillgate dev`: the API and, unless an authorization server is configured, the embedded token server. */
export async function dev(context: CommandContext): Promise<number> {
  const { io } = context;
  const settings = readSettings(await withFreePorts(io.env));
  const logger = createLog({ level: settings.logLevel, destination: io.stderr });
  const tokens = isEmbedded(settings) ? await startTokenServer(settings, logger) : undefined;
  try {
    const api = await startApi(apiOptions(context, settings, tokens, logger));
    try {
      const clients = tokens ? await registerDemoClients(tokens.auth, credentialStore(settings)) : [];
      const ready = await isReadyWithin(api.app.gate.ready(), PATIENCE_MS);
      const { baseUrl, authUrl, issuer } = apiSettings(settings);
      const report = {
        // Since the start of the process: loading the program is part of what is waited for.
        ready_ms: Math.round(process.uptime() * 1000),
        base_url: baseUrl,
        auth_url: authUrl ?? issuer ?? '',
        embedded: tokens !== undefined,
        data_dir: settings.dataDir,
        admin_url: api.adminUrl,
        clients,
        ready,
      };
      print(context, report, banner(report, io.programName));
      await io.untilStopped();
    } finally {
      await api.close();
    }
  } finally {
    await tokens?.close();
  }
  return EXIT.ok;
}

/** The gate and the embedded token server share one source in memory: a change is known at once. */
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
  };
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
