import express, { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { describe, didYouMean, isObject } from 'tillgate/internal';
import { allowOnly, invalidRequest, RequestError } from './errors';
import { isScopeToken } from './options';
import { issueSuccessor, type Context } from './tokens';
import type { ClientRow, State } from './store';
import { deleted, newSecret, patched, registered, rotated, withNewGeneration } from './client';

/** A client credential as the API shows it. */
export interface ClientResource {
  readonly client_id: string;
  readonly description: string;
  /** Separated by spaces. */
  readonly scope: string;
  readonly disabled: boolean;
  readonly generation: number;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
  /** Which secrets are live, newest first. Their text was shown once. */
  readonly secrets: readonly { readonly id: string; readonly created_at: string }[];
}

/** A client credential after a change. */
export interface ChangedClient extends ClientResource {
  /** `false`: on disk, but not in `/generations` yet, because the clock has stepped back. It follows when its time has come. */
  readonly published: boolean;
  /** After a change that discards tokens: when the last one expires, ISO 8601. Callers that do not fetch a new one stay out until then. */
  readonly earlier_tokens_expire_at?: string;
  /** Instead, where no token was issued since the start of the server: the latest time that it can be. */
  readonly earlier_tokens_expire_by?: string;
}

/** A client credential when it gets a secret. */
export interface ClientWithSecret extends ChangedClient {
  readonly client_secret: string;
}

/** The client as the API shows it; of a secret only its id. */
function toResource(row: ClientRow): ClientResource {
  return {
    client_id: row.clientId,
    description: row.description,
    scope: row.scopes.join(' '),
    disabled: row.disabled,
    generation: row.generation,
    created_at: new Date(row.createdMs).toISOString(),
    updated_at: new Date(row.updatedMs).toISOString(),
    secrets: row.secrets.map(({ id, createdMs }) => ({ id, created_at: new Date(createdMs).toISOString() })),
  };
}

const MAX_BODY_BYTES = 16 * 1024;
const MAX_DESCRIPTION_LENGTH = 1_000;

/** Makes the API under `/clients`. Every change is on disk and published before its response. */
export function clientsApi(context: Context): Router {
  const { settings, store, lastIssued } = context;
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
    res.status(201).json(client);
  }

  function show(req: Request, res: Response): void {
    res.json(toResource(requireClient(store.state, req)));
  }

  async function patch(req: Request, res: Response): Promise<void> {
    const changes = readPatch(req.body, settings.scopes);
    const { before, after, said } = await change(context, req, (row, nowMs) => patched(row, changes, nowMs));
    // The tokens issued before are discarded and a new token is created, unless the client is disabled.
    const discarded = after.description !== before?.description && !after.disabled;
    const token = discarded && { token: issueSuccessor(context, after) };
    res.json({ ...toResource(after), ...said, ...token });
  }

  async function remove(req: Request, res: Response): Promise<void> {
    const { after } = await change(context, req, deleted);
    lastIssued.delete(after.clientId);
    res.status(204).end();
  }

  async function rotateSecret(req: Request, res: Response): Promise<void> {
    const options = readRotation(req.body);
    const { text, stored } = newSecret(settings.clock());
    const { after, said } = await change(context, req, (row, nowMs) => rotated(row, stored, options, nowMs));
    res.status(201).json({ ...toResource(after), ...said, client_secret: text });
  }

  async function revokeTokens(req: Request, res: Response): Promise<void> {
    const { after, said } = await change(context, req, withNewGeneration);
    res.json({ ...toResource(after), ...said });
  }
}

async function change(context: Context, req: Request, edit: (row: ClientRow, nowMs: number) => ClientRow) {
  const { before, after, published } = await changeClient(context, (state, nowMs) => {
    return edit(requireClient(state, req), nowMs);
  });
  const expiry = before?.generation !== after.generation && expiryOfTokens(context, after.clientId);
  return { before, after, said: { published, ...expiry } };
}

/** When the tokens of a client expire that were issued so far; nothing where they have. */
function expiryOfTokens({ settings, lastIssued }: Context, clientId: string): Partial<ChangedClient> {
  const nowMs = settings.clock();
  const { expiresAtMs } = lastIssued.get(clientId) ?? {};
  if (expiresAtMs === undefined) {
    return { earlier_tokens_expire_by: new Date(nowMs + settings.tokenLifetimeSeconds * 1000).toISOString() };
  }
  return expiresAtMs > nowMs ? { earlier_tokens_expire_at: new Date(expiresAtMs).toISOString() } : {};
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
    if (clients.get(client.clientId)?.deleted === false) {
      const message =
        `The client id ${JSON.stringify(client.clientId)} is taken: choose another one, or change the client that has ` +
        `it with PATCH /clients/${encodeURIComponent(client.clientId)}.`;
      throw new RequestError(409, 'client_exists', message);
    }
    return registered(client, stored, clients, nowMs);
  });
  return { ...toResource(after), published, client_secret: text };
}

/** Changes one row as it is when the change is applied; stores it first, then publishes its generation. */
async function changeClient({ store, generations }: Context, edit: (state: State, nowMs: number) => ClientRow) {
  const { before, after } = await store.change((state, nowMs) => {
    const after = edit(state, nowMs);
    return { put: after, value: { before: state.clients.get(after.clientId), after } };
  });
  return { before, after, published: await generations.publish([after.clientId, after.generation]) };
}

function requireClient({ clients }: State, { params }: Request): ClientRow {
  const row = clients.get(params['clientId'] as string);
  if (row && !row.deleted) return row;
  const message = 'No client has this id: GET /clients lists the registered ones, POST /clients registers one.';
  throw new RequestError(404, 'not_found', message);
}

/** Other media types are refused, so that a plain HTML form cannot reach the API. */
const requireJson: RequestHandler = function requireJson(req, _res, next) {
  // `null` means no body. Clients that send none often set Content-Length: 0.
  if (req.is('application/json') !== false || req.get('content-length') === '0') return next();
  const message = 'The body must be JSON: send it with Content-Type: application/json.';
  throw new RequestError(415, 'unsupported_media_type', message);
};

/**
 * Reads the body of a registration.
 *
 * @throws RequestError 400 that says what was got, what is expected and what to do.
 */
function readNewClient(body: unknown, known: readonly string[] | undefined) {
  const { client_id, description = '', scope } = readMembers(body, ['client_id', 'description', 'scope']);
  return {
    clientId: readClientId(client_id),
    description: readDescription(description),
    scopes: readScope(scope, known),
  };
}

/** Reads the body of a change; see `readNewClient`. */
function readPatch(body: unknown, known: readonly string[] | undefined) {
  const { description, scope, disabled } = readMembers(body, ['description', 'scope', 'disabled']);
  return {
    ...(description !== undefined && { description: readDescription(description) }),
    ...(scope !== undefined && { scopes: readScope(scope, known) }),
    ...(disabled !== undefined && { disabled: readFlag('disabled', disabled) }),
  };
}

/** Reads the body of a rotation, which may be absent; see `readNewClient`. */
function readRotation(body: unknown = {}) {
  const { keep_tokens = false, revoke_previous = false } = readMembers(body, ['keep_tokens', 'revoke_previous']);
  return {
    keepTokens: readFlag('keep_tokens', keep_tokens),
    revokePrevious: readFlag('revoke_previous', revoke_previous),
  };
}

/** The scopes of a `scope` value (RFC 6749 section 3.3), each once and in order; `undefined` when it breaks the grammar. */
export function parseScope(value: string): readonly string[] | undefined {
  const scopes = value.split(' ');
  return scopes.every(isScopeToken) ? [...new Set(scopes)] : undefined;
}

function readMembers<Name extends string>(body: unknown, known: readonly Name[]): Partial<Record<Name, unknown>> {
  if (!isObject(body)) {
    const got = body === undefined ? 'no body' : describe(body);
    throw invalidRequest(`The body must be a JSON object with ${known.join(', ')}; got ${got}.`);
  }
  for (const name of Object.keys(body)) {
    if (!known.includes(name as Name)) {
      throw invalidRequest(`Unknown member ${describe(name)}${didYouMean(name, known)}`);
    }
  }
  // A copy without a prototype: an inherited member must not count.
  return { __proto__: null, ...body } as Partial<Record<Name, unknown>>;
}

/** A gate gives these names to callers whose tokens name no client. */
const OF_SUBJECTS =
  'client_id must not begin with "sub:", as the names of callers without a client id do. Choose another id, such as "pos-terminal".';
/** Parts of a path, and what no log takes. */
const RESERVED = ['.', '..', '*'];

/** A client id may hold any VSCHAR (RFC 6749 appendix A.1), except what would not survive in a URL. */
function readClientId(value: unknown): string {
  const fits = typeof value === 'string' && /^[\x20-\x7e]{1,128}$/.test(value) && value.trim() === value;
  if (fits && value.startsWith('sub:')) throw invalidRequest(OF_SUBJECTS);
  if (fits && !RESERVED.includes(value)) return value;
  throw invalidRequest(
    'client_id must be a string of 1 to 128 printable ASCII characters, without blanks at its ends, and not ".", ".." ' +
      `or "*"; got ${describe(value)}. Choose another id, such as "pos-terminal".`,
  );
}

function readDescription(value: unknown): string {
  if (typeof value !== 'string') throw invalidRequest(`description must be a string; got ${describe(value)}.`);
  if (value.length > MAX_DESCRIPTION_LENGTH) {
    throw invalidRequest(
      `description must have at most ${MAX_DESCRIPTION_LENGTH} characters; got ${value.length}. Shorten it.`,
    );
  }
  if (/\p{Cc}/u.test(value)) {
    throw invalidRequest('description must not hold control characters, such as line breaks and tabs; leave them out.');
  }
  return value;
}

function readScope(value: unknown, known: readonly string[] | undefined): readonly string[] {
  const scopes = typeof value === 'string' ? parseScope(value) : undefined;
  if (!scopes) {
    throw invalidRequest(
      'scope must be a string of one or more scopes, separated by single spaces, such as "orders:read orders:write"; ' +
        `got ${describe(value)}.`,
    );
  }
  const unknown = known && scopes.find((scope) => !known.includes(scope));
  if (unknown === undefined) return scopes;
  throw invalidRequest(`Unknown scope ${describe(unknown)}${didYouMean(unknown, known ?? [])}`);
}

function readFlag(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalidRequest(`${name} must be true or false; got ${describe(value)}.`);
  return value;
}
