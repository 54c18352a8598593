import type { AuthServer } from '../auth-server/index';
import { createConsole } from '../console/console';
import type { Console } from '../console/console';
import type { GenerationSource } from '../generation/index';
import { authenticateOptions } from '../settings/authenticate-options';
import type { Settings } from '../settings/settings';
import { adviceOn } from './commands/check-token';
import { apiSettings } from './settings';

/** Opens the console of an embedded token server, and of the API that trusts it. */
export function openConsole(
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
