import type { Clock } from '../../core/clock';
import { ownValue } from '../../core/objects';
import { loggableUrl } from '../../core/urls';
import { discoverEndpoint } from '../keys/discovery';
import type { DiscoveryOptions } from '../keys/discovery';
import { fetchJson, FetchError } from '../keys/fetch-json';
import { parseJsonObject } from '../strict-json';

/** The members of a response about an active token. */
export type Claims = Readonly<Record<string, unknown>>;

/** Asks about one token: its claims, or `undefined` when it is not active. Rejects with a FetchError. */
export type AskAbout = (token: string, signal: AbortSignal) => Promise<Claims | undefined>;

/** Where and as whom the endpoint is asked. */
export interface EndpointOptions extends Omit<DiscoveryOptions, 'signal'> {
  /** URL of the endpoint. Default: from the issuer's metadata. */
  readonly url: string | undefined;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly clock: Clock;
}

/** How long a URL from the metadata is used before it is looked up again. */
const URL_MAX_AGE_MS = 600_000;

/** Makes the function that asks the introspection endpoint (RFC 7662 section 2). */
export function introspectionEndpoint(options: EndpointOptions): AskAbout {
  const { clientId, clientSecret, clock } = options;
  const credentials = `${formEncode(clientId)}:${formEncode(clientSecret)}`;
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  let discovered: { readonly url: string; checkedMs: number } | undefined;
  let discovering: Promise<string> | undefined;

  async function discover(signal: AbortSignal): Promise<string> {
    const ageMs = discovered ? clock() - discovered.checkedMs : Infinity;
    if (discovered && ageMs >= 0 && ageMs < URL_MAX_AGE_MS) return discovered.url;
    discovering ??= discoverEndpoint('introspection_endpoint', { ...options, signal }).finally(() => {
      discovering = undefined;
    });
    try {
      discovered = { url: await discovering, checkedMs: clock() };
    } catch (error) {
      // While the metadata cannot be fetched, the last URL is used.
      if (!discovered) throw error;
      discovered.checkedMs = clock();
    }
    return discovered.url;
  }

  return async function askAbout(token, signal) {
    const url = options.url ?? (await discover(signal));
    const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString();
    const response = await fetchJson(url, {
      ...options,
      signal,
      parse: parseJsonObject,
      form: { body, authorization },
    });
    const active = ownValue(response, 'active');
    if (active === false) return undefined;
    if (active === true) return response;
    throw new FetchError(`${loggableUrl(url)} did not say whether the token is active`, { status: 200 });
  };
}

/** RFC 6749 section 2.3.1: id and secret are form-encoded before they are joined. */
function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}
