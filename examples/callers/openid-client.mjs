// One token for all calls, with openid-client 6. After 401 invalid_token, only the token that was refused is replaced.
import * as oidc from 'openid-client';

export function makeCaller(config, scope) {
  let current; // { token: Promise, isReplacement, isAccepted, bornMs, isFailed, untilMs }

  /** The token for the next attempt: requested once for all, and only if the refused one is still the current one. */
  function take(refused) {
    const now = performance.now();
    const rests = current?.isFailed
      ? now < current.bornMs + 1_000 // a failed token request is not repeated at once
      : current === refused
        ? current?.isReplacement && !current.isAccepted && now < current.bornMs + 30_000 // two refused in a row
        : current && now < current.untilMs;
    if (rests) return current;
    const held = { isReplacement: refused !== undefined, isAccepted: false, bornMs: now, untilMs: Infinity };
    held.token = oidc.clientCredentialsGrant(config, { scope }).then(
      ({ access_token, expires_in = 60 }) => {
        held.untilMs = now + expires_in * 1_000 - Math.min(expires_in * 100, 60_000);
        return access_token;
      },
      (error) => {
        Object.assign(held, { isFailed: true, bornMs: performance.now() });
        throw error;
      },
    );
    return (current = held);
  }

  return async function call(url, init = {}) {
    let held = take();
    for (let isRepeated = false; ; isRepeated = true) {
      const headers = new Headers(init.headers);
      headers.set('Authorization', `Bearer ${await held.token}`);
      const response = await fetch(url, { ...init, headers });
      if (![401, 429].includes(response.status) && response.status < 500) held.isAccepted = true;
      const isRefused = /error="invalid_token"/.test(response.headers.get('www-authenticate') ?? '');
      if (response.status !== 401 || !isRefused || response.redirected || isRepeated) return response;
      const next = take(held);
      if (next === held) return response;
      await response.body?.cancel();
      held = next;
    }
  };
}
