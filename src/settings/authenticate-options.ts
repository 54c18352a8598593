import { ConfigurationError } from '../core/configuration-error';
import { MISSING_ISSUER } from './settings';
import type { Settings } from './settings';

/** The options of `authenticate()` that the `TILLGATE_*` variables set. */
export interface SettingsOptions extends Pick<
  Settings,
  | 'audience'
  | 'jwksUri'
  | 'preset'
  | 'scopes'
  | 'introspection'
  | 'generationClaim'
  | 'generationSource'
  | 'maxStalenessMs'
  | 'maxSilenceMs'
  | 'onStale'
  | 'keysMaxAgeMs'
  | 'keysStaleMs'
  | 'clockToleranceSeconds'
  | 'maxTokenAgeSeconds'
  | 'allowHttp'
> {
  readonly issuer: string;
  readonly authUrl: string;
  readonly resource: string;
  readonly exposeReasons: boolean;
}

/**
 * Makes the options of `authenticate()` from the settings.
 *
 * @throws ConfigurationError when no variable names the issuer.
 *
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { authenticateOptions, readSettings } from 'tillgate/app';
 *
 * const gate = authenticate({ ...authenticateOptions(readSettings()), realm: 'shop' });
 * ```
 */
export function authenticateOptions(settings: Settings): SettingsOptions {
  const { issuer } = settings;
  if (issuer === undefined) throw new ConfigurationError([MISSING_ISSUER]);
  return {
    issuer,
    authUrl: settings.authUrl ?? issuer,
    audience: settings.audience,
    jwksUri: settings.jwksUri,
    preset: settings.preset,
    scopes: settings.scopes,
    introspection: settings.introspection,
    generationClaim: settings.generationClaim,
    generationSource: settings.generationSource,
    maxStalenessMs: settings.maxStalenessMs,
    maxSilenceMs: settings.maxSilenceMs,
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
