import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { ConfigurationError } from '../core/configuration-error';
import { isLoopbackHost } from '../core/urls';
import { MISSING_ISSUER, readSettings } from '../settings/settings';
import type { Environment, Settings } from '../settings/settings';

/**
 * Settings of an API that needs an authorization server elsewhere.
 *
 * @throws ConfigurationError with every problem, a missing authorization server among them
 */
export function externalSettings(env: Environment): Settings {
  if (env['TILLGATE_AUTH_URL'] !== undefined || env['TILLGATE_ISSUER'] !== undefined) return readSettings(env);
  throw new ConfigurationError([...problemsOf(env), MISSING_ISSUER]);
}

/** Settings as the API runs with them: without an authorization server of one's own it is the embedded one. */
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

/** Where the embedded token server listens, and its URL. */
export interface EmbeddedAddress {
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

/** Whether `dev` starts the embedded token server: no other issuer is configured. */
export function isEmbedded({ issuer }: Settings): boolean {
  return issuer === undefined;
}

/** Without an admin token the token server stays on loopback, wherever the API listens. */
export function embeddedAddress({ host, authPort, adminToken }: Settings): EmbeddedAddress {
  const listens = adminToken !== undefined || isLoopbackHost(host) ? host : '127.0.0.1';
  return { host: listens, port: authPort, url: `http://${callable(listens)}:${authPort}` };
}

/** A host that this machine can call: all interfaces are reached through loopback; IPv6 needs brackets. */
function callable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/**
 * Replaces port 0 by a port that is free now. Listening on 0 is too late: URLs are part of tokens and metadata before
 * anything listens.
 */
export async function withFreePorts(env: Environment): Promise<Environment> {
  const chosen: Record<string, string> = {};
  for (const name of ['TILLGATE_PORT', 'TILLGATE_AUTH_PORT']) {
    if (env[name] === '0') chosen[name] = String(await freePort());
  }
  return { ...env, ...chosen };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}
