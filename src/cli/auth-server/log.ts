import type { RequestHandler } from 'express';
import { loggablePath } from 'tillgate/internal';
import type { Logger } from 'tillgate';
import type { RequestError } from './errors';
import type { State } from './store';
import type { OAuthResponse } from './token-request';

/** What the log says about a response; the endpoints set it. */
type Noted = Partial<OAuthResponse['locals']> & { readonly refusal?: RequestError };

/**
 * Logs each request once its response is complete: status, client, and why it was refused, which the caller may not learn.
 * Successful reads of `/generations` are left out: every gate repeats them.
 */
export function logRequests(logger: Logger, state: () => State): RequestHandler {
  return function logRequests({ method, originalUrl }, res, next) {
    const path = withoutSecrets(loggablePath(originalUrl));
    res.once('close', () => {
      const { plain, credentials, refusal } = res.locals as Noted;
      if (path.endsWith('/generations') && res.statusCode < 400) return;
      // An id that is not registered may be a secret, sent in the wrong place.
      const ids = [plain, credentials].map((one) => one?.clientId ?? '');
      const client = ids.find((id) => state().clients.get(id)?.deleted === false);
      const detail = refusal && withoutSecrets(refusal.privateDetail ?? refusal.message);
      logger.info({ status: res.statusCode, client, reason: refusal?.code, detail }, `${method} ${path}`);
    });
    next();
  };
}

/** A secret has 43 characters; a token begins with the base64url of `{"`. */
export function withoutSecrets(text: string): string {
  return text.replace(/eyJ[\w-]{8,}(\.[\w-]*)*/g, '[token]').replace(/[\w-]{43,}/g, ({ length }) => `[${length}]`);
}
