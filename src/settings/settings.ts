import { ConfigurationError } from '../core/configuration-error';
import type { PresetName } from '../core/preset-names';
import { contradictions, readValues, unknownNames } from './read-variables';
import type { CompleteValues, Environment } from './read-variables';
import type { RateLimit } from './variable-types';

/** What the `TILLGATE_*` variables say, checked and with every default in place. Frozen. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  readonly baseUrl: string;
  readonly authUrl: string | undefined;
  /** `TILLGATE_ISSUER`, else `TILLGATE_AUTH_URL`, byte for byte. */
  readonly issuer: string | undefined;
  readonly audience: string;
  readonly jwksUri: string | undefined;
  readonly preset: PresetName;
  /** Name of the claim, `iat`, `false` for off, or `undefined`: as the preset has it. */
  readonly generationClaim: string | false | undefined;
  /** Address of the source, or `undefined`: generations are learned from tokens only. */
  readonly generationSource: string | undefined;
  readonly maxStalenessMs: number;
  readonly onStale: 'reject' | 'accept';
  readonly keysMaxAgeMs: number;
  readonly keysStaleMs: number;
  readonly clockToleranceSeconds: number;
  readonly maxTokenAgeSeconds: number;
  readonly authPort: number;
  readonly dataDir: string;
  readonly adminPort: number | undefined;
  readonly adminToken: string | undefined;
  /** `undefined`: no limit. */
  readonly rateLimit: RateLimit | undefined;
  /** `undefined`: no limit. */
  readonly tokenRateLimit: RateLimit | undefined;
  readonly allowHttp: boolean;
  readonly logLevel: string;
  /** Whether `NODE_ENV` is `production`. */
  readonly production: boolean;
}

/**
 * Reads the settings from the environment.
 *
 * @throws ConfigurationError with every problem at once: unknown names, values that do not fit, values that do not fit together.
 */
export function readSettings(env: Environment = process.env): Settings {
  const { values, problems } = readValues(env);
  const all = [...unknownNames(env), ...problems, ...contradictions(values, env)];
  if (all.length > 0) throw new ConfigurationError(all);
  return settle(values as CompleteValues, env['NODE_ENV'] === 'production');
}

/** Puts in place what one setting takes from another. */
function settle(values: CompleteValues, production: boolean): Settings {
  const baseUrl = values.baseUrl ?? defaultBaseUrl(values.host, values.port);
  return Object.freeze({
    ...values,
    baseUrl,
    issuer: values.issuer ?? values.authUrl,
    audience: values.audience ?? baseUrl,
    generationSource: values.generationSource || undefined,
    adminPort: values.adminPort === false ? undefined : values.adminPort,
    rateLimit: values.rateLimit || undefined,
    tokenRateLimit: values.tokenRateLimit || undefined,
    production,
  });
}

function defaultBaseUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
