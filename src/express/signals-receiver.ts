import type { ServerResponse } from 'node:http';
import { AuthError } from '../core/errors';
import { isTemporary } from '../core/problem';
import { readBody } from '../token/http';
import type { Reason } from '../core/reasons';
import { callerOf } from './request-state';
import type { GateRequest, Middleware } from './request-state';
import { openSecurityEvents } from '../gate/security-events';
import type { SignalsReceiverOptions } from '../gate/security-events';

/** Codes of the error response (RFC 8935 section 2.4). */
type DeliveryError = 'invalid_request' | 'invalid_key' | 'invalid_issuer' | 'invalid_audience';

interface DeliveryResponse {
  readonly status: 202 | 400 | 405 | 415 | 429 | 503;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly err: DeliveryError; readonly description: string };
}

const MEDIA_TYPE = /^application\/secevent\+jwt\s*(?:;|$)/i;
const MAX_BODY_BYTES = 65_536;

/**
 * Makes the receiver of OpenID Shared Signals (RFC 8935 push delivery): CAEP `token-claims-change`,
 * `credential-change` and `session-revoked` for a client (`iss_sub`, RFC 9493 section 3.2.4) publish its new floor.
 * Responds with 202 only once the floor is published, so that a transmitter repeats what was not. `close()` stops
 * refreshing the transmitter's keys.
 *
 * @throws TypeError when an option is wrong
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { Redis } from 'ioredis';
 * import { authenticate, signalsReceiver } from 'tillgate';
 * import { redisGenerations } from 'tillgate/generations';
 *
 * const generations = redisGenerations({ client: new Redis('redis://127.0.0.1:6379') });
 * const app = express();
 * app.post('/events', signalsReceiver({
 *   transmitter: 'https://login.example.com',
 *   audience: 'https://api.example.com/events',
 *   jwksUri: 'https://login.example.com/ssf/jwks',
 *   generationSource: generations,
 * }));
 * app.use('/v1', authenticate({
 *   issuer: 'https://login.example.com',
 *   audience: 'https://api.example.com',
 *   generationSource: generations,
 * }));
 * ```
 */
export function signalsReceiver(options: SignalsReceiverOptions): Middleware & { close(): void } {
  const events = openSecurityEvents(options);
  const { logger, transmitter } = events;

  async function receive(req: GateRequest): Promise<DeliveryResponse> {
    if (req.method !== 'POST') return { status: 405, headers: { Allow: 'POST' } };
    if (!MEDIA_TYPE.test(req.headers['content-type'] ?? '')) return { status: 415 };
    const body = await bodyOf(req);
    if (body === undefined) return refused('invalid_request', `The body is larger than ${MAX_BODY_BYTES} bytes.`);
    await events.receive(body.toString().trim(), callerOf(req));
    return { status: 202 };
  }

  function fail(error: unknown): DeliveryResponse {
    if (error instanceof AuthError && !isTemporary(error.status)) {
      logger.warn({ transmitter, reason: error.reason, detail: error.privateDetail }, 'a security event was refused');
      return refused(
        DELIVERY_ERRORS[error.reason] ?? 'invalid_request',
        error.message.replace('access token', 'token'),
      );
    }
    logger.error(
      { transmitter, detail: error instanceof Error ? error.message : '' },
      'a security event was not applied',
    );
    if (error instanceof AuthError && error.status === 429) return { status: 429, headers: error.headers };
    return { status: 503, headers: { 'Retry-After': '5' } };
  }

  function signalsReceiver(req: GateRequest, res: ServerResponse): void {
    receive(req)
      .catch(fail)
      .then((response) => send(res, response))
      .catch(() => res.destroy());
  }
  return Object.assign(signalsReceiver as Middleware, { close: () => events.close() });
}

/** What a raw or text parser has read before, or the body itself. `undefined` when it is larger than accepted. */
async function bodyOf(req: GateRequest): Promise<string | Uint8Array | undefined> {
  const { body } = req;
  const isParsed = typeof body === 'string' || Buffer.isBuffer(body);
  // Leaving the loop must not destroy the connection: the response is still to be sent.
  if (!isParsed) return readBody(req.iterator({ destroyOnReturn: false }), MAX_BODY_BYTES);
  return body.length > MAX_BODY_BYTES ? undefined : body;
}

const DELIVERY_ERRORS: Readonly<Partial<Record<Reason, DeliveryError>>> = {
  unknown_key: 'invalid_key',
  unusable_key: 'invalid_key',
  bad_signature: 'invalid_key',
  algorithm_not_allowed: 'invalid_key',
  wrong_issuer: 'invalid_issuer',
  wrong_audience: 'invalid_audience',
};

function refused(err: DeliveryError, description: string): DeliveryResponse {
  return { status: 400, body: { err, description } };
}

function send(res: ServerResponse, { status, headers = {}, body }: DeliveryResponse): void {
  // A response timeout may have responded meanwhile.
  if (res.headersSent) return;
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.setHeader('Cache-Control', 'no-store');
  if (body) res.setHeader('Content-Type', 'application/json');
  res.end(body && JSON.stringify(body));
}
