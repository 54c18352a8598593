import { httpGenerations } from 'tillgate/generations';
import type { AuthenticateOptions } from 'tillgate';
import { authenticateOptions, readSettings } from 'tillgate/env';
import type { Environment, Settings } from 'tillgate/env';
import type { Logger } from 'pino';
import { createLog } from './log';

/** What the app is made from: the `TILLGATE_*` variables, the options of its gate, its log. */
export interface AppSettings extends Settings {
  readonly gate: AuthenticateOptions;
  readonly log: Logger;
}

/**
 * Reads what the app is made from. Tests replace the gate's options by those of a test issuer:
 * `createApp({ ...appSettings(env), gate: issuer.options })`.
 *
 * @throws ConfigurationError with all problems
 */
export function appSettings(env: Environment = process.env): AppSettings {
  const settings = readSettings(env, { requireIssuer: true });
  return { ...settings, gate: gateOptions(settings), log: createLog(settings.logLevel) };
}

/** The token server of `tillgate dev` shows its generations to nobody without the admin token, if it has one. */
function gateOptions(settings: Settings): AuthenticateOptions {
  const options = authenticateOptions(settings);
  const { generationSource: url, adminToken, authUrl, allowHttp } = settings;
  if (adminToken === undefined || url === undefined || url !== `${authUrl}/generations`) return options;
  const headers = { authorization: `Bearer ${adminToken}` };
  return { ...options, generationSource: httpGenerations({ url, allowHttp, headers }) };
}
