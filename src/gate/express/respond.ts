import { IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { callUnwaited } from '../core/callbacks';
import { serializeChallenge } from '../core/challenge';
import { AuthError, presentationOf, presentError } from '../core/errors';
import { errorText, type Logger } from '../core/logger';
import { attempt, isList, ownMembers, ownValue } from '../core/objects';
import { DEPENDENCIES, readOptions } from '../core/options';
import type { Reason } from '../core/reasons';
import { DEFAULT_PRESENTATION, isTemporary, PROBLEM_TYPES, problemTitle, problemType } from '../core/refusal';
import { refusalHeaders, refusalProblem, type Presentation } from '../core/refusal';
import { usesDpop } from '../token/bearer';
import { requestIdOf, routeOf, stateOf, type GateRequest, type Next } from './request-state';

/**
 * Responds with a problem body (RFC 9457): `application/problem+json`, not to be stored.
 *
 * @example
 * ```ts
 * import { sendProblem } from 'tillgate';
 * import type { RequestHandler } from 'express';
 *
 * export const notFound: RequestHandler = (req, res) =>
 *   sendProblem(req, res, { status: 404, code: 'not_found', detail: 'No order has this id.' });
 * ```
 */
export function sendProblem(
  req: IncomingMessage,
  res: ServerResponse,
  problem: {
    readonly status: number;
    /** Machine-readable name of the problem, stable across versions. */
    readonly code: string;
    /** URL of a page about the problem. Default: as the gate before has it (`problemTypes`), else `about:blank`. */
    readonly type?: string | undefined;
    /** Default, and always where `type` is `about:blank` (RFC 9457 section 4.2.1): the standard phrase of the status. */
    readonly title?: string;
    /** For the caller: what was got, what is expected, what to do. */
    readonly detail?: string;
    readonly headers?: Readonly<Record<string, string>>;
    /** Further members of the body (RFC 9457 section 3.2). */
    readonly members?: Readonly<Record<string, unknown>>;
  },
): void {
  const { status, code, title, detail, type, headers = {}, members = {} } = ownMembers(problem);
  const requestId = requestIdOf(req);
  const named = type ?? problemType(code, stateOf(req)?.enforcer.settings.problemTypes);
  const body = {
    type: named,
    title: problemTitle(status, title, named),
    status,
    detail,
    code,
    ...members,
    ...(requestId !== undefined && { request_id: requestId }),
  };
  writeProblem(res, status, headers, JSON.stringify(body));
}

/** Responds with 500 and no detail: the cause goes to the log. */
export function sendInternalError(req: GateRequest, res: ServerResponse): void {
  sendProblem(req, res, { status: 500, code: 'internal_error', detail: 'The request could not be processed.' });
}

/**
 * Hands a rejection to the app's error handler: Express catches only what a middleware throws before it returns. Where
 * that throws too, the response is a 500, and the process continues.
 */
export function handleRejection(
  work: Promise<void>,
  { req, res, next, logger }: { req: GateRequest; res: ServerResponse; next: Next; logger: Logger },
): void {
  work
    .catch((error: unknown) => next(asObject(error)))
    .catch((error: unknown) => {
      logger.error({ error: errorText(error) }, 'next() threw');
      // What other middleware has put over the methods of the response may throw too.
      callUnwaited(
        () => sendInternalError(req, res),
        () => res.destroy(),
      );
    });
}

/** What was thrown, as `next()` may get it: Express goes on after `next(undefined)`, and after `next('route')`. */
export function asObject(thrown: unknown): object {
  return Object(thrown) === thrown ? (thrown as object) : new Error('not an Error was thrown', { cause: thrown });
}

/** The error as an app's error handler gets it: as the gate that refused presents it to this request. */
export function presentTo(req: GateRequest, error: AuthError, ofGate: Presentation): AuthError {
  return presentError(error, usesDpop(req) ? whereDpopWasUsed(ofGate) : ofGate);
}

/** Responds with one refusal, as the gate that refused presents it. */
export function sendRefusal(req: GateRequest, res: ServerResponse, error: AuthError, problemTypes?: string): void {
  const ofGate = presentationOf(error);
  const presentation = ofGate === DEFAULT_PRESENTATION ? { ...ofGate, problemTypes } : ofGate;
  writeProblem(res, error.status, error.headers, JSON.stringify(refusalProblem(error, presentation, requestIdOf(req))));
}

type SendRefusal = (req: GateRequest, res: ServerResponse, error: AuthError) => void;

/** Makes the function with which a gate responds to refused requests. */
export function refusalSender(presentation: Presentation): SendRefusal {
  const send = preparedSender(presentation);
  const usedDpop = whereDpopWasUsed(presentation);
  if (usedDpop === presentation) return send;
  const sendToDpop = preparedSender(usedDpop);
  return (req, res, error) => (usesDpop(req) ? sendToDpop : send)(req, res, error);
}

/** How the same gate presents refusals of requests with the DPoP scheme. */
function whereDpopWasUsed(presentation: Presentation): Presentation {
  const { dpop } = presentation;
  return dpop && !dpop.used ? { ...presentation, dpop: { ...dpop, used: true } } : presentation;
}

/** Challenge and body of each kind of refusal are made once. */
function preparedSender(presentation: Presentation): SendRefusal {
  const byReason = new Map<Reason, ReturnType<typeof prepare>>();
  const byScopes = new WeakMap<readonly string[], ReturnType<typeof prepare>>();

  /** What is the same for all refusals with one reason and one list of scopes. */
  function prepare(error: AuthError) {
    const problem = refusalProblem(error, presentation);
    const text = JSON.stringify(problem);
    const headers = refusalHeaders(error, presentation);
    // The text is for requests without an id; the length is in bytes.
    return { reason: error.reason, headers, problem, text, length: Buffer.byteLength(text) };
  }

  /** Guards pass frozen arrays, so the array itself can be the key. */
  function preparedFor(error: AuthError): ReturnType<typeof prepare> {
    const { reason, status, requiredScopes } = error;
    // `Retry-After` and nonces differ from one refusal to the next.
    if (isTemporary(status) || error.nonce !== undefined) return prepare(error);
    const known = requiredScopes ? byScopes.get(requiredScopes) : byReason.get(reason);
    if (known?.reason === reason) return known;
    const prepared = prepare(error);
    if (!requiredScopes) byReason.set(reason, prepared);
    else if (Object.isFrozen(requiredScopes)) byScopes.set(requiredScopes, prepared);
    return prepared;
  }

  return function send(req, res, error) {
    const { headers, problem, text, length } = preparedFor(error);
    const requestId = requestIdOf(req);
    if (requestId === undefined) writeProblem(res, error.status, headers, text, length);
    else writeProblem(res, error.status, headers, JSON.stringify({ ...problem, request_id: requestId }));
  };
}

/** Writes a problem that is JSON already; `length` is that of `text` in bytes. */
function writeProblem(
  res: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  text: string,
  length = Buffer.byteLength(text),
): void {
  if (res.headersSent) {
    // Too late for another response. One that has only begun must not look complete.
    if (!res.writableEnded) res.destroy();
    return;
  }
  res.statusCode = status;
  for (const name of Object.keys(headers)) res.setHeader(name, headers[name] as string);
  res.setHeader('Content-Type', 'application/problem+json; charset=utf-8');
  res.setHeader('Content-Length', length);
  res.setHeader('Cache-Control', 'no-store');
  res.end(text);
}

/**
 * Writes a refusal to the socket of a request that wants to change the protocol, such as a WebSocket, and closes it: such
 * a request has a socket and no response. Never throws; where a response to an earlier request of the connection is pending,
 * it only closes.
 *
 * @param socket - the second argument of Node's event `upgrade`
 * @param error - what `gate.verify()` has rejected with; anything but an AuthError becomes a bare 500
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { authenticate, refuseUpgrade } from 'tillgate';
 *
 * const gate = authenticate({ issuer: 'https://login.example.com', audience: 'https://api.example.com' });
 * createServer().on('upgrade', (req, socket) => {
 *   const accept = () => {
 *     socket.on('error', () => socket.destroy());
 *     socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
 *   };
 *   gate.verify(req).then(accept, (error) => refuseUpgrade(socket, error));
 * });
 * ```
 */
export function refuseUpgrade(socket: Duplex, error: unknown): void {
  // Without a listener, a client that has gone would end the process.
  socket.on('error', () => undefined);
  const req: GateRequest = new IncomingMessage(socket as Socket);
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.once('finish', () => socket.end(() => socket.destroy()));
  try {
    // Throws while the response to an earlier request of the connection is pending: this one would be taken for it.
    res.assignSocket(socket as Socket);
    if (error instanceof AuthError) sendRefusal(req, res, error);
    else sendInternalError(req, res);
  } catch {
    // It is called where nothing catches: in a callback of a promise.
    socket.destroy();
  }
}

/**
 * Makes the last error handler of an app: every error becomes a problem body (RFC 9457). An `AuthError` gets the
 * response of its reason. Any other error gets what Express's own handler gives it: the status of `err.status`, `err.statusCode` or
 * the response, where that is a 4xx or 5xx, else 500; the headers of the error; its message only where `expose` is true. A 401 has a
 * challenge (RFC 9110 section 15.5.2). Errors without a status of their own, and every 5xx, go to the log.
 *
 * @throws TypeError when an option is wrong
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { problemHandler } from 'tillgate';
 *
 * const app = express();
 * app.use(problemHandler());
 * ```
 */
export function problemHandler(
  options: {
    /** Where unexpected errors go, with their stack. Default: the console. */
    readonly logger?: Logger | false | undefined;
    /** Base URL of the pages about problems, as in `authenticate()`. Default: as the gate before has it, else none. */
    readonly problemTypes?: string | undefined;
  } = {},
): (error: unknown, req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void {
  const table = { logger: DEPENDENCIES.logger, problemTypes: PROBLEM_TYPES };
  const { logger, problemTypes } = readOptions('problemHandler', options, table);

  // Express tells an error handler by its four parameters.
  return function handleProblem(error, req, res, _next) {
    if (error instanceof AuthError) return sendRefusal(req, res, error, problemTypes);
    const own = [memberOf(error, 'status'), memberOf(error, 'statusCode')].find(isFailure);
    const status = own ?? (isFailure(res.statusCode) ? res.statusCode : 500);
    if (own === undefined || status >= 500) logUnexpected(logger, req, error);
    if (!res.headersSent) {
      for (const name of res.getHeaderNames()) if (OF_THE_BODY.test(name)) res.removeHeader(name);
      if (own !== undefined) setHeaders(res, memberOf(error, 'headers'));
      if (status === 401 && !res.hasHeader('WWW-Authenticate')) res.setHeader('WWW-Authenticate', PLAIN_CHALLENGE);
    }
    const code = CODES[status] ?? (STATUS_CODES[status] ?? 'error').toLowerCase().replace(/[^a-z]/g, '_');
    const detail =
      messageOf(error, status) ??
      PUBLIC_DETAILS[status] ??
      `The request ${status < 500 ? 'was refused' : 'could not be processed'}.`;
    sendProblem(req, res, { status, type: problemTypes && problemTypes + code, code, detail });
  };
}

/** Headers that describe the body of the response that failed. */
const OF_THE_BODY =
  /^(content-(encoding|language|range|location|disposition|digest|length|type)|etag|last-modified|accept-ranges)$/;

/** A member of an error or of its class, as http-errors has them. A polluted prototype adds nothing. */
function memberOf(error: unknown, name: string): unknown {
  if (Object.hasOwn(Object.prototype, name)) return ownValue(error, name);
  return (error as Readonly<Record<string, unknown>> | null | undefined)?.[name];
}

const isFailure = (status: unknown): status is number =>
  typeof status === 'number' && /^[45]\d\d$/.test(String(status));

/** Sets the headers of an error; leaves out what Node does not accept, and what would describe another body. */
function setHeaders(res: ServerResponse, headers: unknown): void {
  for (const [name, value] of Object.entries(Object(headers) as object) as [string, unknown][]) {
    if (OF_THE_BODY.test(name.toLowerCase()) || /^(transfer-encoding|connection)$/i.test(name)) continue;
    const isText = typeof value === 'string' || (typeof value === 'number' && !/^www-authenticate$/i.test(name));
    if (isText || isList(value)) attempt(() => res.setHeader(name, isText ? String(value) : (value as string[])));
  }
}

/** The message where the error exposes it. Those of body parsers, which have a type, can quote the request. */
function messageOf(error: unknown, status: number): string | undefined {
  const [expose, message, type] = ['expose', 'message', 'type'].map((name) => memberOf(error, name));
  if (expose !== true || typeof message !== 'string' || message === '' || message === STATUS_CODES[status])
    return undefined;
  return /^(entity|encoding|charset|request|stream|parameters)\./.test(String(type)) ? undefined : message;
}

/** Logs an error that became a 500, with its route. */
export function logUnexpected(logger: Logger, req: GateRequest, error: unknown): void {
  logger.error({ route: routeOf(req), requestId: requestIdOf(req), error: errorText(error) }, 'unexpected error');
}

/** In place of the messages of body parsers and routers, which can quote the request. */
const PUBLIC_DETAILS: Readonly<Record<number, string>> = {
  400: 'The request could not be read: check its syntax, for example the JSON of its body and the encoding of its path.',
  404: 'No resource has this URL.',
  405: 'This resource does not support the method.',
  413: 'The body is too large.',
  415: 'The media type or encoding of the body is not supported.',
};

const CODES: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  413: 'payload_too_large',
  500: 'internal_error',
};

/** A 401 must say how to authenticate (RFC 9110 section 15.5.2). */
const PLAIN_CHALLENGE = serializeChallenge('Bearer', [['realm', 'api']]);
