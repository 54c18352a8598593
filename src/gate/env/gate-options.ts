import { ConfigurationError } from '../core/configuration-error';
import { readOptions } from '../core/options';
import type { OpaqueOptions } from '../token/opaque-options';
import type { AuthenticateOptions } from '../verifier/options';
import { GATE_OPTIONS, ISSUER_OPTIONS } from '../verifier/read-options';
import { MISSING_ISSUER, ofDotEnv, settingsBeside } from './read-settings';
import type { GateSetting, Settings } from './settings';
import { GATE_SETTINGS } from './variables';

/** The options of `authenticate()` that the `TILLGATE_*` variables set. `keys` is not declared: no options have it next to `jwksUri`. */
export interface SettingsOptions extends Pick<Settings, Exclude<GateSetting, 'keys'>> {
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
 * import { authenticateOptions, readSettings } from 'tillgate/env';
 *
 * const gate = authenticate({ ...authenticateOptions(readSettings()), realm: 'shop' });
 * ```
 */
export function authenticateOptions(settings: Settings): SettingsOptions {
  const { issuer, authUrl = issuer, baseUrl: resource, production } = settings;
  if (issuer === undefined || authUrl === undefined) throw new ConfigurationError([MISSING_ISSUER]);
  const options = Object.fromEntries(GATE_SETTINGS.map((name) => [name, settings[name]])) as Pick<
    Settings,
    GateSetting
  >;
  return { ...options, issuer, authUrl, resource, exposeReasons: !production };
}

/**
 * Adds options of `authenticate()` that name no issuer to what the variables say. One that is not `undefined` replaces the value
 * of its variable whole.
 *
 * @throws TypeError where `issuer` is there, and undefined, and where an option is unknown
 * @throws ConfigurationError when a variable is wrong, or none names the issuer
 */
export function besideVariables(options: AuthenticateOptions): AuthenticateOptions {
  readOptions('authenticate', options, GATE_OPTIONS, { alsoKnown: ['issuers', ...Object.keys(ISSUER_OPTIONS)] });
  if (Object.hasOwn(options, 'issuers')) return options;
  if (Object.hasOwn(options, 'issuer')) {
    throw new TypeError(
      `authenticate(): option "issuer" must be ${ISSUER_OPTIONS.issuer.expected}, got undefined${ofDotEnv()}`,
    );
  }
  const own = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const { keys, jwksUri, generationClaim, allowHttp, opaque } = own as Partial<Settings>;
  const dropped = {
    ...(keys !== undefined && { jwksUri: undefined }),
    ...(jwksUri !== undefined && { keys: undefined }),
    ...(generationClaim === false && { generationSource: undefined }),
  };
  const replaced = Object.fromEntries(Object.keys(own).map((name) => [name, undefined]));
  // What the options say decides which of the other values contradict each other.
  const deciding = { ...(allowHttp !== undefined && { allowHttp }), ...(opaque && { opaque: {} as OpaqueOptions }) };
  const settings = settingsBeside({ ...replaced, ...dropped, ...deciding }, process.env, true);
  return { ...authenticateOptions(settings), ...dropped, ...own };
}
