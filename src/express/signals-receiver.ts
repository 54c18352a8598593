import type { ServerResponse } from 'node:http';
import { LRUCache } from 'lru-cache';
import { AuthError } from '../core/auth-error';
import { ownValue } from '../core/objects';
import { isTemporary } from '../core/problem';
import { readBody } from '../core/read-body';
import type { Reason } from '../core/reasons';
import { FIRST_TIME_MS, requireChange } from '../generation/generation';
import { securityEventVerifier } from '../token/security-event';
import type { SecurityEvent } from '../token/security-event';
import type { GateRequest, Middleware } from './request-state';
import { readSignalsOptions } from '../gate/signals-options';
import type { SignalsReceiverOptions } from '../gate/signals-options';

/** Codes of the error response (RFC 8935 section 2.4). */
type DeliveryError = 'invalid_request' | 'invalid_key' | 'invalid_issuer' | 'invalid_audience';

interface DeliveryResponse {
  readonly status: 202 | 400 | 405 | 415 | 429 | 503;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly err: DeliveryError; readonly description: string };
}

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/';
/** Events after which earlier tokens of a client must die. */
const EVENTS = ['token-claims-change', 'credential-change', 'session-revoked'].map((name) => CAEP + name);
const MEDIA_TYPE = /^application\/secevent\+jwt\s*(?:;|$)/i;
const MAX_BODY_BYTES = 65_536;
const REMEMBERED_EVENTS = 100_000;

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
  const settings = readSignalsOptions(options);
  const { publish, logger, transmitter, issuer, keys } = settings;
  const verify = securityEventVerifier(settings);
  const seen = new LRUCache<string, true>({ max: REMEMBERED_EVENTS });

  async function receive(req: GateRequest): Promise<DeliveryResponse> {
    if (req.method !== 'POST') return { status: 405, headers: { Allow: 'POST' } };
    if (!MEDIA_TYPE.test(req.headers['content-type'] ?? '')) return { status: 415 };
    const body = await bodyOf(req);
    if (body === undefined) return refused('invalid_request', `The body is larger than ${MAX_BODY_BYTES} bytes.`);
    const event = await verify(body.toString().trim());
    if (seen.has(event.tokenId)) return { status: 202 };
    await apply(event);
    // Remembered only now: a delivery whose floor could not be published must be repeated.
    seen.set(event.tokenId, true);
    return { status: 202 };
  }

  async function apply(event: SecurityEvent): Promise<void> {
    // A floor before 2001 would count as a counter, which no token in ms is lower than.
    if (event.issuedAtMs < FIRST_TIME_MS) throw invalidEvent('iat is before 2001');
    for (const [type, payload] of Object.entries(event.events)) {
      if (!EVENTS.includes(type)) continue;
      const fields = { transmitter, type, tokenId: event.tokenId };
      const clientId = clientOf(event, payload, issuer);
      if (clientId === undefined) {
        logger.info(fields, 'a security event is about no client of the issuer');
        continue;
      }
      const floor = settings.floorAt(changedAtMs(event, payload));
      requireStorable(clientId, floor);
      await publish(clientId, floor);
      logger.info({ ...fields, clientId }, 'a security event raised the floor of a client');
    }
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
  return Object.assign(signalsReceiver as Middleware, { close: () => keys.close() });
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

/** No store holds such a client, so a repeated delivery would never succeed: 400, not 503. */
function requireStorable(clientId: string, floor: number): void {
  try {
    requireChange([clientId, floor], floor);
  } catch (cause) {
    throw invalidEvent('sub cannot be stored', cause);
  }
}

function invalidEvent(privateDetail: string, cause?: unknown): AuthError {
  return new AuthError('invalid_claims', { privateDetail, cause });
}

/** `sub_id` at the top (SSF 1.0), or `subject` inside the event (as earlier drafts had it). */
function clientOf(event: SecurityEvent, payload: unknown, issuer: string): string | undefined {
  const subject = (event.subject ?? ownValue(payload, 'subject')) as Record<string, unknown> | undefined;
  const { format, iss, sub } = subject ?? {};
  return format === 'iss_sub' && iss === issuer && typeof sub === 'string' && sub !== '' ? sub : undefined;
}

/**
 * Time of the change: `event_timestamp` (CAEP 1.0 section 2) in seconds, never later than the event token, because a
 * floor in the future would refuse tokens that are not issued yet.
 */
function changedAtMs(event: SecurityEvent, payload: unknown): number {
  const timestamp = ownValue(payload, 'event_timestamp');
  const isTime = typeof timestamp === 'number' && timestamp * 1000 >= FIRST_TIME_MS;
  return isTime ? Math.min(timestamp * 1000, event.issuedAtMs) : event.issuedAtMs;
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
