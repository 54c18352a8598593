// One token for all calls, with openid-client 6. After 401 invalid_token, only the token that was refused is replaced.
import { setTimeout as sleep } from 'node:timers/promises';
import * as oidc from 'openid-client';

export function makeCaller(config, scope, baseUrl) {
  let current; // the latest token, or the request for it

  /** Requests one token for all. `refusals`: tokens in a row before it that were refused and never accepted, or one that was. */
  function request(refusals, waitMs = 0) {
    const held = { refusals, isAccepted: false, bornMs: Infinity, untilMs: Infinity };
    const grant = async () => {
      if (waitMs > 0) await sleep(waitMs);
      held.bornMs = performance.now();
      try {
        const { access_token, expires_in = 60 } = await oidc.clientCredentialsGrant(config, { scope });
        held.untilMs = held.bornMs + expires_in * 1_000 - Math.min(expires_in * 100, 60_000);
        return access_token;
      } catch (error) {
        const seconds = Number((error.response ?? error.cause)?.headers?.get?.('retry-after') ?? 1) || 1;
        held.failedUntilMs = performance.now() + Math.min(seconds, 60) * 1_000;
        throw error;
      }
    };
    held.token = grant();
    return (current = held);
  }

  /** The token for the next attempt; the refused one itself if no other one is available. */
  function take(refused) {
    const now = performance.now();
    if (current?.failedUntilMs !== undefined) return now < current.failedUntilMs ? current : request(0);
    if (!current || current !== refused) return current && now < current.untilMs ? current : request(0);
    if (current.isAccepted || current.refusals === 0) return request(current.isAccepted ? 1 : 2);
    // Where the API compares the time of issue, a token of the second of the change is refused too.
    if (current.refusals === 1) return request(2, current.bornMs + 1_000 - now);
    return now < current.bornMs + 30_000 ? current : request(2); // two refused in a row
  }

  return async function call(url, init = {}) {
    if (new URL(url).origin !== new URL(baseUrl).origin) throw new TypeError('The token is for the API only');
    let held = take();
    for (let attempt = 1; ; attempt++) {
      const headers = new Headers(init.headers);
      headers.set('Authorization', `Bearer ${await held.token}`);
      const response = await fetch(url, { ...init, headers });
      if (![401, 429].includes(response.status) && response.status < 500) held.isAccepted = true;
      const isRefused = /error="invalid_token"/.test(response.headers.get('www-authenticate') ?? '');
      // The target of a redirect may be somebody else: it gets no token.
      if (response.status !== 401 || !isRefused || response.redirected || attempt === 3) return response;
      const next = take(held);
      if (next === held) return response;
      await response.body?.cancel();
      held = next;
    }
  };
}
