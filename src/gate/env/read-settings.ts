import { existsSync } from 'node:fs';
import { ConfigurationError } from '../core/configuration-error';
import { describe } from '../core/words';
import { hostInUrl, isSecureUrl } from '../core/urls';
import { readVariables, type Environment, type Given } from './read-variables';
import type { Settings } from './settings';
import { showUrl } from './text-forms';

/** The problem when an authorization server is needed and not configured. */
export const MISSING_ISSUER =
  'TILLGATE_AUTH_URL: not set, expected the URL of the authorization server, for example TILLGATE_AUTH_URL=https://login.example.com; set it, or TILLGATE_ISSUER, or give authenticate() the option "issuer"';

/** What is probably wrong where the issuer is missing. */
export function ofDotEnv(): string {
  return existsSync('.env')
    ? '; a .env lies in this folder, which plain node does not read: start the app with node --env-file=.env'
    : '';
}

/**
 * Reads the settings from the environment.
 *
 * @param needs - `requireIssuer`: a missing issuer is a problem too, for what becomes a gate
 * @throws ConfigurationError with all problems: unknown names, wrong values, values that contradict each other.
 */
export function readSettings(
  env: Environment = process.env,
  { requireIssuer = false }: { readonly requireIssuer?: boolean } = {},
): Settings {
  return settingsBeside({}, env, requireIssuer);
}

/** @param options - what stands for the values of variables that options replace */
export function settingsBeside(options: Given, env: Environment, requireIssuer: boolean): Settings {
  const { texts, values, problems } = readVariables(env);
  const hasIssuer = Boolean(texts['TILLGATE_ISSUER'] ?? texts['TILLGATE_AUTH_URL']);
  problems.push(...contradictions({ ...values, ...options }, texts, hasIssuer));
  if (requireIssuer && !hasIssuer) problems.push(MISSING_ISSUER + ofDotEnv());
  if (problems.length > 0) throw new ConfigurationError(problems);
  return withDefaults(values, env['NODE_ENV'] === 'production');
}

/** Fills in the defaults that depend on other settings. */
function withDefaults(values: Given, production: boolean): Settings {
  const { host = '', port, baseUrl = `http://${hostInUrl(host)}:${port}` } = values;
  if (isForAllInterfaces(values)) {
    process.emitWarning(`${NOT_CALLABLE}, got ${describe(host)}; ${baseUrl} takes its place`, 'TillgateWarning');
  }
  return Object.freeze({
    ...values,
    baseUrl,
    issuer: values.issuer ?? values.authUrl,
    audience: values.audience ?? baseUrl,
    generationSource: values.generationSource || undefined,
    rateLimit: values.rateLimit || undefined,
    tokenRateLimit: values.tokenRateLimit || undefined,
    production,
  } as Settings);
}

/** Callers cannot use such an address, and each of them would get it as audience, resource and URL of the metadata. */
function isForAllInterfaces({ host, baseUrl }: Given): boolean {
  return host !== undefined && baseUrl === undefined && hostInUrl(host).replace(/^\[(.*)\]$/, '$1') !== host;
}

const NOT_CALLABLE = 'TILLGATE_BASE_URL: not set, and TILLGATE_HOST is an address to listen on, which nobody can call';

/** Problems of values that contradict each other. */
function contradictions(values: Given, env: Environment, hasIssuer: boolean): string[] {
  const problems: string[] = [];
  if (env['NODE_ENV'] === 'production' && isForAllInterfaces(values)) {
    problems.push(
      `${NOT_CALLABLE}, got ${describe(values.host)}; set it to the public URL of the API, for example TILLGATE_BASE_URL=https://api.example.com`,
    );
  }
  const urls = [
    ['TILLGATE_AUTH_URL', values.authUrl],
    ['TILLGATE_ISSUER', values.issuer],
    ['TILLGATE_JWKS_URI', values.jwksUri],
    ['TILLGATE_INTROSPECTION_URL', values.opaque?.url],
    ['TILLGATE_GENERATIONS', values.generationSource],
  ] as const;
  for (const [name, value] of urls) {
    if (!value || values.allowHttp || isSecureUrl(value)) continue;
    problems.push(
      `${name}: got ${showUrl(value)}, expected https:// (http:// is for loopback hosts); use https:// or set TILLGATE_ALLOW_HTTP=on`,
    );
  }
  for (const name of ['TILLGATE_JWKS_URI', 'TILLGATE_INTROSPECTION_URL']) {
    if (hasIssuer || env[name] === undefined) continue;
    problems.push(`${name}: set without an issuer; set TILLGATE_ISSUER to exactly the iss of its tokens`);
  }
  if (values.keys && values.jwksUri !== undefined) {
    problems.push('TILLGATE_KEYS: set together with TILLGATE_JWKS_URI; remove one of the two');
  }
  if (values.keys && !values.opaque) {
    problems.push(
      'TILLGATE_KEYS: got "none" without TILLGATE_INTROSPECTION_CLIENT_ID, so no token could be accepted; set it with its secret, or remove TILLGATE_KEYS',
    );
  }
  if (values.generationSource && values.generationClaim === false) {
    problems.push(
      'TILLGATE_GENERATIONS: set while TILLGATE_GENERATION_CLAIM=off checks no generation; remove one of the two',
    );
  }
  // Port 0 takes any free port, so it may be used twice. With an issuer no token server is started.
  if (!hasIssuer && values.port && values.port === values.authPort) {
    problems.push(`TILLGATE_AUTH_PORT: got ${values.port}, which is also the port of TILLGATE_PORT; give each its own`);
  }
  return problems;
}
