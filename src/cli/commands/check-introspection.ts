import { randomUUID } from 'node:crypto';
import { systemClock, systemSchedule } from '../../core/clock';
import { loggableUrl } from '../../core/urls';
import type { IntrospectionOptions } from '../../index';
import { introspectionEndpoint } from '../../token/introspection/endpoint';
import { discoverEndpoint } from '../../token/keys/discovery';
import type { DiscoveryOptions } from '../../token/keys/discovery';
import type { FetchError } from '../../token/keys/fetch-json';
import { failed, passed } from './finding';
import type { Finding } from './finding';

const ENDPOINT_FIX =
  'set TILLGATE_INTROSPECTION_URL to the introspection endpoint of the authorization server (RFC 7662)';
const CREDENTIAL_FIX =
  'set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET to a client of the authorization server that may introspect tokens';

/** Whether the introspection endpoint can be found, accepts the credential of the API, and knows no made-up token. */
export async function introspectionFinding(
  document: DiscoveryOptions,
  introspection: IntrospectionOptions,
): Promise<Finding> {
  const { clientId } = introspection;
  let { url } = introspection;
  try {
    url ??= await discoverEndpoint('introspection_endpoint', document);
  } catch (error) {
    return failed('introspection', (error as Error).message, ENDPOINT_FIX);
  }
  const dependencies = { clock: systemClock, schedule: systemSchedule };
  const { clientSecret } = introspection;
  const askAbout = introspectionEndpoint({ ...document, ...dependencies, url, clientId, clientSecret });
  try {
    const claims = await askAbout(`made-up-by-tillgate-check-${randomUUID()}`, document.signal);
    if (!claims) return passed('introspection', `${loggableUrl(url)} accepts the client ${clientId}`);
    return failed('introspection', `${loggableUrl(url)} says that a made-up token is active`, ENDPOINT_FIX);
  } catch (error) {
    const { message, status } = error as FetchError;
    const isRefused = status === 400 || status === 401 || status === 403;
    return failed('introspection', message, isRefused ? CREDENTIAL_FIX : ENDPOINT_FIX);
  }
}
