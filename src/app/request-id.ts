import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- the one way to type a member of Express's request
  namespace Express {
    interface Request {
      /** Set by `requestId()`; stands in the log, in `X-Request-Id` and in problem bodies. */
      id?: string;
    }
  }
}

/** Options of {@link requestId}. */
export interface RequestIdOptions {
  /** Makes a new id. Default: a random UUID. */
  readonly generate?: () => string;
}

/** A caller's id is taken over only in this shape, and never the beginning of a token: it goes into logs and problem bodies. */
const SANE_ID = /^(?!eyJ)[A-Za-z0-9._-]{1,64}$/;

/** Gives every request an id: the caller's `X-Request-Id` where it is sane, else a new one. The answer carries it. */
export function requestId({ generate = randomUUID }: RequestIdOptions = {}): RequestHandler {
  return function requestId(req, res, next) {
    const given = req.get('x-request-id');
    req.id = given !== undefined && SANE_ID.test(given) ? given : generate();
    res.setHeader('X-Request-Id', req.id);
    next();
  };
}
