import type { RequestHandler, Response } from 'express';
import { loggablePath } from '../core/logger';
import type { Context } from './context';
import { refusalOf } from './errors';
import type { OAuthLocals } from './oauth/request';

/** Resource servers read the metadata, the key set and the generations all the time. */
const POLLED = /\/(generations(\/stream)?$|\.well-known\/)/;

/** A secret has 43 characters: one that was sent as part of a path is not logged. */
const LONG_SEGMENT = /[^/]{40,}/g;

/**
 * Logs every request when its response is complete: no query, no body, no secret and no token. Leaves out what
 * resource servers read again and again, unless it fails.
 */
export function logRequests({ settings: { logger, clock }, store }: Context): RequestHandler {
  /** Only ids of registered clients are logged: another text may be a secret that was sent in the wrong place. */
  function callerOf(res: Response): object {
    const { credentials } = res.locals as Partial<OAuthLocals>;
    const { code, detail } = refusalOf(res) ?? {};
    const client = credentials && store.state.clients.get(credentials.clientId);
    if (code !== 'invalid_client') return { client_id: client?.clientId, error: code, detail };
    if (!client || client.deleted) {
      return { error: code, detail: credentials ? 'no client has this id' : 'no client id and secret' };
    }
    return { client_id: client.clientId, error: code, detail: client.disabled ? 'disabled' : 'wrong secret' };
  }

  return function logRequest(req, res, next) {
    const startedMs = clock();
    res.once('close', () => {
      const { statusCode: status } = res;
      const path = loggablePath(req.originalUrl).replace(LONG_SEGMENT, ({ length }) => `[${length}]`);
      if (status < 400 && POLLED.test(path)) return;
      const fields = {
        method: req.method,
        path,
        status,
        duration_ms: Math.round(clock() - startedMs),
        ...callerOf(res),
        ...(!res.writableFinished && { aborted: true }),
      };
      logger.info(fields, 'token server request');
    });
    next();
  };
}
