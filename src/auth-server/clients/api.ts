import express, { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import type { Context } from '../context';
import { allowOnly, RequestError } from '../errors';
import { issueSuccessor } from '../oauth/tokens';
import type { ClientRow, State } from '../storage/state';
import type { ChangeContext, Edit } from '../storage/store';
import { deleted, patched, registered, rotated, toResource, withNewGeneration } from './client';
import type { ClientResource, ClientWithSecret } from './client';
import { readNewClient, readPatch, readRotation } from './input';
import { newSecret } from './secrets';

const MAX_BODY_BYTES = 16 * 1024;

/** Makes the API under `/clients`. Every change is on disk and published before its response. */
export function clientsApi(context: Context): Router {
  const { settings, store, lastGranted } = context;
  const router = Router();
  router.use(requireJson);
  // Not strict: a number or a string gets the response for any other body that is not an object.
  router.use(express.json({ limit: MAX_BODY_BYTES, strict: false }));
  router.route('/').get(list).post(register).all(allowOnly('GET, HEAD, POST'));
  router.route('/:clientId').get(show).patch(patch).delete(remove).all(allowOnly('GET, HEAD, PATCH, DELETE'));
  router.route('/:clientId/secrets').post(rotateSecret).all(allowOnly('POST'));
  router.route('/:clientId/revoke').post(revokeTokens).all(allowOnly('POST'));
  return router;

  function list(_req: Request, res: Response): void {
    res.json({ clients: listClients(store.state) });
  }

  async function register(req: Request, res: Response): Promise<void> {
    const client = await registerClient(context, req.body);
    res.location(`${req.baseUrl}/${encodeURIComponent(client.client_id)}`);
    sendClient(res.status(201), client);
  }

  function show(req: Request, res: Response): void {
    sendClient(res, toResource(requireClient(store.state, clientIdOf(req))));
  }

  async function patch(req: Request, res: Response): Promise<void> {
    const changes = readPatch(req.body, settings.scopes);
    const { before, after } = await change(req, (before, at) => {
      const after = patched(before, changes, at);
      return { put: after, value: { before, after } };
    });
    // The tokens issued before are discarded and a new token is created, unless the client is disabled.
    const discarded = after.description !== before.description && !after.disabled;
    sendClient(res, { ...toResource(after), ...(discarded && { token: issueSuccessor(context, after) }) });
  }

  async function remove(req: Request, res: Response): Promise<void> {
    await change(req, (row, at) => ({ put: deleted(row, at), value: undefined }));
    lastGranted.delete(clientIdOf(req));
    res.status(204).end();
  }

  async function rotateSecret(req: Request, res: Response): Promise<void> {
    const options = readRotation(req.body);
    const client = await change(req, (row, at) => {
      const { text, stored } = newSecret(at.nowMs);
      const put = rotated(row, stored, options, at);
      return { put, value: { ...toResource(put), client_secret: text } };
    });
    sendClient(res.status(201), client);
  }

  async function revokeTokens(req: Request, res: Response): Promise<void> {
    const client = await change(req, (row, at) => {
      const put = withNewGeneration(row, at);
      return { put, value: toResource(put) };
    });
    sendClient(res, client);
  }

  /** Changes the client of a request, as its row is when the change is applied. */
  function change<Value>(req: Request, edit: (row: ClientRow, at: ChangeContext) => ReturnType<Edit<Value>>) {
    const clientId = clientIdOf(req);
    return storeAndPublish(context, clientId, (state, at) => {
      const row = requireClient(state, clientId);
      requireMatch(req, row);
      return edit(row, at);
    });
  }
}

/** The registered clients, as the API shows them. */
export function listClients({ clients }: State): ClientResource[] {
  return [...clients.values()].filter((row) => !row.deleted).map(toResource);
}

/**
 * Registers the client that a body describes.
 *
 * @throws RequestError `invalid_request`, or 409 `client_exists`
 */
export function registerClient(context: Context, body: unknown): Promise<ClientWithSecret> {
  const client = readNewClient(body, context.settings.scopes);
  return storeAndPublish(context, client.clientId, ({ clients }, at) => {
    const before = clients.get(client.clientId);
    if (before && !before.deleted) throw clientExists(client.clientId);
    const { text, stored } = newSecret(at.nowMs);
    const put = registered(client, stored, before, at);
    return { put, value: { ...toResource(put), client_secret: text } };
  });
}

async function storeAndPublish<Value>(
  { store, publisher }: Context,
  clientId: string,
  edit: Edit<Value>,
): Promise<Value> {
  const value = await store.change(edit);
  const row = store.state.clients.get(clientId);
  if (row) await publisher.publish([[clientId, row.generation]]);
  return value;
}

function requireClient({ clients }: State, clientId: string): ClientRow {
  const row = clients.get(clientId);
  if (row && !row.deleted) return row;
  const message = 'No client has this id: GET /clients lists the registered ones, POST /clients registers one.';
  throw new RequestError(404, 'not_found', message);
}

/** Evaluates `If-Match` (RFC 9110 section 13.1.1) against the entity tag of a client. Without it, any version. */
function requireMatch(req: Request, { version }: ClientRow): void {
  const expected = req.get('if-match');
  if (expected === undefined || expected.trim() === '*') return;
  // Weak tags never match in a strong comparison: they keep their W/ here.
  if (expected.split(',').some((tag) => tag.trim() === `"${version}"`)) return;
  const message = `The client has changed meanwhile: its version is "${version}". GET it again, then repeat the change.`;
  throw new RequestError(412, 'precondition_failed', message, { ETag: `"${version}"` });
}

function clientExists(clientId: string): RequestError {
  const message =
    `The client id ${JSON.stringify(clientId)} is taken: choose another one, or change the client that has it with ` +
    `PATCH /clients/${encodeURIComponent(clientId)}.`;
  return new RequestError(409, 'client_exists', message);
}

/** Other media types are refused, so that a plain HTML form cannot reach the API. */
const requireJson: RequestHandler = function requireJson(req, _res, next) {
  // `null` means no body. Clients that send none often set Content-Length: 0.
  if (req.is('application/json') !== false || req.get('content-length') === '0') return next();
  const message = 'The body must be JSON: send it with Content-Type: application/json.';
  throw new RequestError(415, 'unsupported_media_type', message);
};

/** The entity tag of a client is its version. */
function sendClient(res: Response, client: ClientResource): void {
  res.set('ETag', `"${client.version}"`).json(client);
}

function clientIdOf(req: Request): string {
  return req.params['clientId'] as string;
}
