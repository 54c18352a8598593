import { MISSING_ISSUER } from '../settings/read-variables';
import type { Environment } from '../settings/read-variables';
import { ConfigurationError, readSettings } from '../index';
import type { Settings } from '../index';
import { embeddedAddress, isEmbedded } from './embedded';

/**
 * Settings of an API that needs an authorization server elsewhere.
 *
 * @throws ConfigurationError with every problem, a missing authorization server among them
 */
export function externalSettings(env: Environment): Settings {
  if (env['TILLGATE_AUTH_URL'] !== undefined || env['TILLGATE_ISSUER'] !== undefined) return readSettings(env);
  throw new ConfigurationError([...problemsOf(env), MISSING_ISSUER]);
}

/** Settings as the API runs with them: where nothing names an authorization server, it is the embedded one. */
export function apiSettings(settings: Settings): Settings {
  if (!isEmbedded(settings)) return settings;
  const { url } = embeddedAddress(settings);
  return Object.freeze({
    ...settings,
    authUrl: url,
    issuer: url,
    generationSource: settings.generationSource ?? `${url}/generations`,
  });
}

function problemsOf(env: Environment): readonly string[] {
  try {
    readSettings(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}
