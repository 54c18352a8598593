import type { Settings } from 'tillgate/env';
import { hostInUrl } from 'tillgate/internal';
import { isLoopback } from './auth-server/options';

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

/** The audience of what the embedded token server issues: the first, where the API accepts several. */
export function firstAudience({ audience }: Settings): string {
  return [audience].flat()[0] ?? '';
}

/** Whether `dev` starts the embedded token server: no other issuer is configured. */
export function isEmbedded({ issuer }: Settings): boolean {
  return issuer === undefined;
}

/** Whether the token server of the settings is the embedded one: variables for an API next to it name its URL. */
export function usesEmbedded(settings: Settings): boolean {
  const { issuer, authUrl = issuer } = settings;
  return isEmbedded(settings) || (issuer === authUrl && issuer === embeddedAddress(settings).url);
}

/** Where a server listens. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

/** Where the embedded token server listens, and its URL. Without an admin token that is loopback, wherever the API listens. */
export function embeddedAddress({ host, authPort, adminToken }: Settings): Address {
  const listens = adminToken !== undefined || isLoopback(host) ? host : '127.0.0.1';
  return { host: listens, port: authPort, url: `http://${hostInUrl(listens)}:${authPort}` };
}
