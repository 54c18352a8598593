import { ConfigurationError } from '../../core/configuration-error';
import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import { tokenServerBanner } from '../banner';
import type { CommandContext, CommandOptions } from '../command';
import { EXIT, print } from '../command';
import { credentialStore } from '../credentials';
import { registerDemoClients, scopesOf } from '../demo-clients';
import { openLog } from '../log';
import { embeddedAddress, withFreePorts } from '../settings';
import { startTokenServer } from '../start-token-server';

/** `tillgate dev --token-server`: the embedded token server alone, for an API that runs elsewhere. */
export async function devTokenServer(context: CommandContext, options: CommandOptions): Promise<number> {
  const { io } = context;
  const settings = ownSettings(readSettings(await withFreePorts(io.env)));
  const scopes = scopesOf(options);
  const tokens = await startTokenServer(settings, openLog(io, options, settings), { scopes });
  try {
    const report = {
      ready_ms: Math.round(process.uptime() * 1000),
      auth_url: embeddedAddress(settings).url,
      audience: settings.audience,
      data_dir: settings.dataDir,
      scopes,
      clients: await registerDemoClients(tokens.auth, credentialStore(settings), scopes),
    };
    print(context, report, tokenServerBanner(report, io.programName));
    await io.untilStopped();
  } finally {
    await tokens.close();
  }
  return EXIT.ok;
}

/**
 * The variables may be those of the API, which name this token server.
 *
 * @throws ConfigurationError when they name another one
 */
function ownSettings(settings: Settings): Settings {
  const { issuer, generationSource } = settings;
  const { url } = embeddedAddress(settings);
  if (issuer !== undefined && issuer !== url) {
    throw new ConfigurationError([
      `TILLGATE_AUTH_URL: got "${issuer}", but --token-server starts one at ${url}; leave it out, or change TILLGATE_AUTH_PORT`,
    ]);
  }
  return { ...settings, generationSource: generationSource === `${url}/generations` ? undefined : generationSource };
}
