import { createLog, startApi } from '../../app/index';
import { authenticateOptions } from '../../index';
import { print } from '../answer';
import type { CommandContext } from '../command';
import { EXIT } from '../exit';
import { withFreePorts } from '../free-ports';
import { authorizedGenerations } from '../generation-source';
import { rateLimitRedis } from '../rate-limit-redis';
import { externalSettings } from '../settings';

/** `tillgate serve`: the API alone, until it is asked to stop. */
export async function serve(context: CommandContext): Promise<number> {
  const { io } = context;
  const settings = externalSettings(await withFreePorts(io.env));
  const logger = createLog({ level: settings.logLevel, destination: io.stderr });
  const generations = authorizedGenerations(settings, { fetch: io.fetch, logger });
  try {
    const gate = {
      ...authenticateOptions(settings),
      fetch: io.fetch,
      ...(generations && { generationSource: generations }),
    };
    const api = await startApi({ settings, logger, gate, connectToRedis: rateLimitRedis(settings) });
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
    await generations?.close?.();
  }
}
