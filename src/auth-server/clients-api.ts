import express, { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { ALL_CLIENTS } from '../generation/log';
import type { Context } from './context';
import { allowOnly, RequestError } from './errors';
import { issueSuccessor } from './tokens';
import type { ClientRow, State } from './store';
import {
  deleted,
  newSecret,
  patched,
  registered,
  rotated,
  toResource,
  withNewGeneration,
  withOneGeneration,
} from './client';
import type { ChangedClient, ClientResource, ClientWithSecret } from './client';
import { readNewClient, readPatch, readRotation } from './client-input';

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
    const { before, after, published } = await change(req, (row, nowMs) => patched(row, changes, nowMs));
    // The tokens issued before are discarded and a new token is created, unless the client is disabled.
    const discarded = after.description !== before?.description && !after.disabled;
    const token = discarded && { token: issueSuccessor(context, after) };
    sendClient(res, { ...toResource(after), published, ...token });
  }

  async function remove(req: Request, res: Response): Promise<void> {
    const { after } = await change(req, deleted);
    lastGranted.delete(after.clientId);
    res.status(204).end();
  }

  async function rotateSecret(req: Request, res: Response): Promise<void> {
    const options = readRotation(req.body);
    const { text, stored } = newSecret(settings.clock());
    const { after, published } = await change(req, (row, nowMs) => rotated(row, stored, options, nowMs));
    sendClient(res.status(201), { ...toResource(after), published, client_secret: text });
  }

  async function revokeTokens(req: Request, res: Response): Promise<void> {
    if (clientIdOf(req) === ALL_CLIENTS) return void res.json(await revokeAll(context));
    const { after, published } = await change(req, withNewGeneration);
    sendClient(res, { ...toResource(after), published });
  }

  function change(req: Request, edit: (row: ClientRow, nowMs: number) => ClientRow): Promise<Changed> {
    const clientId = clientIdOf(req);
    return changeClient(context, ({ clients }, nowMs) => {
      const row = requireClient(clients.get(clientId));
      requireMatch(req, row);
      return edit(row, nowMs);
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
  const { after, published } = await changeClient(context, ({ clients }, nowMs) => {
    if (clients.get(client.clientId)?.deleted === false) throw clientExists(client.clientId);
    return registered(client, stored, clients, nowMs);
  });
  return { ...toResource(after), published, client_secret: text };
}

interface Changed extends Pick<ChangedClient, 'published'> {
  readonly before: ClientRow | undefined;
  readonly after: ClientRow;
}

/** Changes one row as it is when the change is applied; stores it first, then publishes its generation. */
async function changeClient(
  { store, generations }: Context,
  edit: (state: State, nowMs: number) => ClientRow,
): Promise<Changed> {
  const { before, after } = await store.change((state, nowMs) => {
    const after = edit(state, nowMs);
    return { put: [after], value: { before: state.clients.get(after.clientId), after } };
  });
  return { before, after, published: await generations.publish([after.clientId, after.generation]) };
}

/** Discards the tokens of all clients by one change. */
async function revokeAll({ store, generations }: Context): Promise<object> {
  const { clientId, generation } = await store.change(({ clients }, nowMs) => {
    const put = withOneGeneration(clients, nowMs);
    return { put, value: put[0] };
  });
  return { client_id: clientId, generation, published: await generations.publish([clientId, generation]) };
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
function sendClient(res: Response, client: ClientResource | ChangedClient | ClientWithSecret): void {
  res.set('ETag', `"${client.version}"`).json(client);
}

function clientIdOf(req: Request): string {
  return req.params['clientId'] as string;
}
