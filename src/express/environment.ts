import { ConfigurationError } from '../core/configuration-error';
import { MISSING_ISSUER } from '../settings/read-variables';
import type { Settings } from '../settings/settings';
import type { AuthenticateOptions } from './authenticate-options';

/**
 * The options of `authenticate()` that the `TILLGATE_*` variables stand for.
 *
 * @throws ConfigurationError when no variable names the issuer.
 */
export function authenticateOptions(settings: Settings): AuthenticateOptions {
  const { issuer } = settings;
  if (issuer === undefined) throw new ConfigurationError([MISSING_ISSUER]);
  return {
    issuer,
    authUrl: settings.authUrl ?? issuer,
    audience: settings.audience,
    jwksUri: settings.jwksUri,
    preset: settings.preset,
    generationClaim: settings.generationClaim,
    generationSource: settings.generationSource,
    maxStalenessMs: settings.maxStalenessMs,
    onStale: settings.onStale,
    keysMaxAgeMs: settings.keysMaxAgeMs,
    keysStaleMs: settings.keysStaleMs,
    clockToleranceSeconds: settings.clockToleranceSeconds,
    maxTokenAgeSeconds: settings.maxTokenAgeSeconds,
    resource: settings.baseUrl,
    allowHttp: settings.allowHttp,
    exposeReasons: !settings.production,
  };
}
