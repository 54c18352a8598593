import type { Schedule } from '../../core/clock';
import { ownMembers } from '../../core/objects';
import { clientAuthorization, loggableUrl } from '../../core/urls';
import { FetchError, fetchObject, OutgoingRequests, unlessAborted, type FetchOptions } from '../../net/http';
import type { JsonObject } from '../../net/strict-json';
import { discoverEndpoint, type DiscoveryOptions } from '../keys/fetch-keys';
import type { OpaqueOptions } from '../opaque-options';

/** Asks about a token: resolves with the response, with `undefined` when the token is not active, or rejects with a FetchError. */
export type AskAbout = (token: string, signal: AbortSignal) => Promise<JsonObject | undefined>;

/** For one look at the metadata. */
const LOOKUP_TIMEOUT_MS = 5_000;

/** Makes the function that asks the introspection endpoint about a token (RFC 7662 section 2). */
export function introspectionEndpoint(
  { url: given, clientId, clientSecret }: OpaqueOptions,
  { issuer, authUrl, checkUrl }: Omit<DiscoveryOptions, keyof FetchOptions>,
  { schedule, ...limits }: Pick<FetchOptions, 'fetch' | 'maxBytes'> & { readonly schedule: Schedule },
): AskAbout {
  const headers = ownMembers({ authorization: clientAuthorization(clientId, clientSecret) });
  const requests = new OutgoingRequests(schedule);
  /** The URL in the metadata, which is looked up again after a call that failed. */
  let found: Promise<string> | undefined;

  function find(signal: AbortSignal): Promise<string> {
    // A time limit of its own: that of the first call which waits must not end the lookup for the others.
    found ??= requests.run(LOOKUP_TIMEOUT_MS, (limit) =>
      discoverEndpoint('introspection_endpoint', { issuer, authUrl, checkUrl, ...limits, signal: limit }),
    );
    return unlessAborted(signal, `the metadata of ${loggableUrl(authUrl)}`, found);
  }

  async function ask(token: string, signal: AbortSignal): Promise<JsonObject | undefined> {
    const url = given ?? (await find(signal));
    const form = new URLSearchParams({ token, token_type_hint: 'access_token' });
    const response = await fetchObject(url, { ...limits, signal, headers, form });
    if (response['active'] === false) return undefined;
    if (response['active'] === true) return response;
    throw new FetchError(`${loggableUrl(url)} did not say whether the token is active`, { status: 200 });
  }

  return (token, signal) =>
    ask(token, signal).catch((error: unknown) => {
      found = undefined;
      throw error;
    });
}
