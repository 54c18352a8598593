import express, { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import type { Context } from '../context';
import { allowOnly, RequestError } from '../errors';
import { issueSuccessor } from '../oauth/tokens';
import type { ClientRow, State } from '../storage/state';
import type { ChangeContext } from '../storage/store';
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
  router
    .route('/')
    .get((_req, res) => void res.json({ clients: listClients(store.state) }))
    .post(register)
    .all(allowOnly('GET, HEAD, POST'));
  router.route('/:clientId').get(show).patch(patch).delete(remove).all(allowOnly('GET, HEAD, PATCH, DELETE'));
  router.route('/:clientId/secrets').post(rotateSecret).all(allowOnly('POST'));
  router.route('/:clientId/revoke').post(revokeTokens).all(allowOnly('POST'));
  return router;

  async function register(req: Request, res: Response): Promise<void> {
    const client = await registerClient(context, req.body);
    res.location(`${req.baseUrl}/${encodeURIComponent(client.client_id)}`);
    sendClient(res.status(201), client);
  }

  function show(req: Request, res: Response): void {
    sendClient(res, toResource(requireClient(store.state.clients.get(clientIdOf(req)))));
  }

  async function patch(req: Request, res: Response): Promise<void> {
    const changes = readPatch(req.body, settings.scopes);
    const { before, after } = await change(req, (row, at) => patched(row, changes, at));
    // The tokens issued before are discarded and a new token is created, unless the client is disabled.
    const discarded = after.description !== before?.description && !after.disabled;
    sendClient(res, { ...toResource(after), ...(discarded && { token: issueSuccessor(context, after) }) });
  }

  async function remove(req: Request, res: Response): Promise<void> {
    const { after } = await change(req, deleted);
    lastGranted.delete(after.clientId);
    res.status(204).end();
  }

  async function rotateSecret(req: Request, res: Response): Promise<void> {
    const options = readRotation(req.body);
    const { text, stored } = newSecret(settings.clock());
    const { after } = await change(req, (row, at) => rotated(row, stored, options, at));
    sendClient(res.status(201), { ...toResource(after), client_secret: text });
  }

  async function revokeTokens(req: Request, res: Response): Promise<void> {
    const { after } = await change(req, withNewGeneration);
    sendClient(res, toResource(after));
  }

  function change(req: Request, edit: (row: ClientRow, at: ChangeContext) => ClientRow): Promise<Changed> {
    return changeClient(context, clientIdOf(req), (before, at) => {
      const row = requireClient(before);
      requireMatch(req, row);
      return edit(row, at);
    });
  }
}

/** The registered clients, as the API shows them. */
export function listClients({ clients }: State): ClientResource[] {
  return [...clients.values()].filter((row) => !row.deleted).map(toResource);
}

/** Registers the client that a body describes; throws RequestError `invalid_request`, or 409 `client_exists`. */
export async function registerClient(context: Context, body: unknown): Promise<ClientWithSecret> {
  const client = readNewClient(body, context.settings.scopes);
  const { text, stored } = newSecret(context.settings.clock());
  const { after } = await changeClient(context, client.clientId, (before, at) => {
    if (before && !before.deleted) throw clientExists(client.clientId);
    return registered(client, stored, before, at);
  });
  return { ...toResource(after), client_secret: text };
}

interface Changed {
  readonly before: ClientRow | undefined;
  readonly after: ClientRow;
}

/** Changes the row that a client has when the change is applied; stores the new one first, then publishes its floor. */
async function changeClient(
  { store, publisher }: Context,
  clientId: string,
  edit: (before: ClientRow | undefined, at: ChangeContext) => ClientRow,
): Promise<Changed> {
  const changed = await store.change(({ clients }, at) => {
    const before = clients.get(clientId);
    const after = edit(before, at);
    return { put: after, value: { before, after } };
  });
  await publisher.publish([[clientId, changed.after.generation]]);
  return changed;
}

function requireClient(row: ClientRow | undefined): ClientRow {
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
function sendClient(res: Response, client: ClientResource | ClientWithSecret): void {
  res.set('ETag', `"${client.version}"`).json(client);
}

function clientIdOf(req: Request): string {
  return req.params['clientId'] as string;
}
