import express, { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import type { TokenResponse, Tokens } from '../oauth/tokens';
import { allowOnly, RefusedRequest } from '../problem';
import type { ClientRow } from '../storage/state';
import { readNewClient, readPatch, readRotation } from './input';
import type { Patched, Precondition, Registry } from './registry';
import { toResource } from './client';

/** What the registration API works on. */
export interface ClientsApiOptions {
  readonly registry: Registry;
  readonly tokens: Tokens;
  /** Scopes that may be registered; `undefined`: any. */
  readonly scopes: readonly string[] | undefined;
}

const LARGEST_BODY_BYTES = 16 * 1024;

/** Makes the API under `/clients`. */
export function clientsApi({ registry, tokens, scopes }: ClientsApiOptions): Router {
  const router = Router();
  router.use(requireJson);
  // Not strict: a number or a string gets the response for any other body that is not an object.
  router.use(express.json({ limit: LARGEST_BODY_BYTES, strict: false }));
  router.route('/').get(list).post(register).all(allowOnly('GET, HEAD, POST'));
  router.route('/:clientId').get(show).patch(change).delete(remove).all(allowOnly('GET, HEAD, PATCH, DELETE'));
  router.route('/:clientId/secrets').post(rotateSecret).all(allowOnly('POST'));
  router.route('/:clientId/revoke').post(revokeTokens).all(allowOnly('POST'));
  return router;

  function list(_req: Request, res: Response): void {
    res.json({ clients: registry.list().map(toResource) });
  }

  async function register(req: Request, res: Response): Promise<void> {
    const { row, secret } = await registry.register(readNewClient(req.body, scopes));
    res.location(`${req.baseUrl}/${encodeURIComponent(row.clientId)}`);
    sendClient(res, 201, row, { client_secret: secret });
  }

  function show(req: Request, res: Response): void {
    sendClient(res, 200, registry.get(clientIdOf(req)));
  }

  async function change(req: Request, res: Response): Promise<void> {
    const patched = await registry.patch(clientIdOf(req), readPatch(req.body, scopes), preconditionOf(req));
    const token = successorToken(patched, tokens);
    sendClient(res, 200, patched.after, token && { token });
  }

  async function remove(req: Request, res: Response): Promise<void> {
    await registry.remove(clientIdOf(req), preconditionOf(req));
    tokens.forget(clientIdOf(req));
    res.status(204).end();
  }

  async function rotateSecret(req: Request, res: Response): Promise<void> {
    const { row, secret } = await registry.rotate(clientIdOf(req), readRotation(req.body), preconditionOf(req));
    sendClient(res, 201, row, { client_secret: secret });
  }

  async function revokeTokens(req: Request, res: Response): Promise<void> {
    sendClient(res, 200, await registry.revoke(clientIdOf(req), preconditionOf(req)));
  }
}

/** Other media types are refused, so that a plain HTML form cannot reach the API. */
const requireJson: RequestHandler = function requireJson(req, _res, next) {
  // `null` means no body. Clients that send none often set Content-Length: 0.
  if (req.is('application/json') !== false || req.get('content-length') === '0') return next();
  throw new RefusedRequest({
    status: 415,
    code: 'unsupported_media_type',
    detail: 'The body must be JSON: send it with Content-Type: application/json.',
  });
};

/**
 * When the Description of a client credential changes, the tokens issued before are discarded and a new token is
 * created: with the scopes of the last one, as far as they are still registered. A disabled client gets none.
 */
function successorToken({ before, after }: Patched, tokens: Tokens): TokenResponse | undefined {
  if (after.description === before.description || after.disabled) return undefined;
  const kept = tokens.lastGranted(after.clientId)?.filter((scope) => after.scopes.includes(scope)) ?? [];
  return tokens.issue(after, kept.length > 0 ? kept : after.scopes);
}

/** The entity tag of a client is its version. */
function sendClient(res: Response, status: number, row: ClientRow, more: object = {}): void {
  res
    .status(status)
    .set('ETag', `"${row.version}"`)
    .json({ ...toResource(row), ...more });
}

/** Makes the check of `If-Match` (RFC 9110 section 13.1.1), to run together with the change. Without it, any version. */
function preconditionOf(req: Request): Precondition {
  const expected = req.get('if-match');
  return function requireMatch({ version }) {
    if (expected === undefined || expected.trim() === '*') return;
    // Weak tags never match in a strong comparison: they keep their W/ here.
    if (expected.split(',').some((tag) => tag.trim() === `"${version}"`)) return;
    throw new RefusedRequest({
      status: 412,
      code: 'precondition_failed',
      detail: `The client has changed meanwhile: its version is "${version}". GET it again, then repeat the change.`,
      headers: { ETag: `"${version}"` },
    });
  };
}

function clientIdOf(req: Request): string {
  return req.params['clientId'] as string;
}
