import type { ServerResponse } from 'node:http';
import type { RequestHandler } from 'express';

/** Responses to requests whose client waits with its body for 100 (Continue), and whether the connection closes after them anyway. */
const waiting = new WeakMap<ServerResponse, () => boolean>();

/**
 * Notes that the client waits (RFC 9110 section 10.1.1). A final response that comes before the 100 closes the connection: what follows on
 * it can be the body, or the next request.
 */
export function awaitContinue(res: ServerResponse, isClosing: () => boolean): void {
  waiting.set(res, isClosing);
  res.setHeader('Connection', 'close');
}

/** Whether the client waits for 100, or got a final response instead. */
export function isWaiting(res: ServerResponse | undefined): boolean {
  return res !== undefined && waiting.has(res);
}

/** Asks for the body. Mount it after the gate and the rate limit, so that a refused upload is not sent. */
export const inviteBody: RequestHandler = (_req, res, next) => {
  const isClosing = waiting.get(res);
  waiting.delete(res);
  if (isClosing?.() === false) res.removeHeader('Connection');
  if (isClosing) res.writeContinue();
  next();
};

/** Runs a middleware that reads the body, except where the client waits with it: reading would wait as well. */
export function unlessWaiting(read: RequestHandler): RequestHandler {
  return function unlessWaiting(req, res, next) {
    if (isWaiting(res)) next();
    else read(req, res, next);
  };
}
