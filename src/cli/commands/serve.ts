import { authenticateOptions } from '../../settings/authenticate-options';
import type { CommandContext, CommandOptions } from '../command';
import { EXIT, print } from '../command';
import { authorizedGenerations } from './generations';
import { startHosted } from '../load-app';
import { openLog } from '../log';
import { rateLimitRedis } from '../rate-limit-redis';
import { externalSettings, withFreePorts } from '../settings';

/** `tillgate serve`: the API alone, until it is asked to stop. */
export async function serve(context: CommandContext, options: CommandOptions): Promise<number> {
  const { io } = context;
  const settings = externalSettings(await withFreePorts(io.env));
  const logger = openLog(io, options, settings);
  const generationSource = authorizedGenerations(settings, { fetch: io.fetch, logger });
  try {
    const gate = { ...authenticateOptions(settings), fetch: io.fetch, ...(generationSource && { generationSource }) };
    const api = await startHosted(options.app, { settings, logger, gate, connectToRedis: rateLimitRedis(settings) });
    try {
      print(
        context,
        { base_url: settings.baseUrl, listening: api.url, issuer: settings.issuer, admin: api.adminUrl },
        `Tillgate listens on ${api.url}, issuer ${settings.issuer}${api.adminUrl ? `, admin ${api.adminUrl}` : ''}`,
      );
      await io.untilStopped();
    } finally {
      await api.close();
    }
    return EXIT.ok;
  } finally {
    await generationSource?.close?.();
  }
}
