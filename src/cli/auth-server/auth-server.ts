import type { RequestListener } from 'node:http';
import cors from 'cors';
import express, { Router } from 'express';
import type { ErrorRequestHandler, Express, RequestHandler } from 'express';
import helmet from 'helmet';
import type { GenerationSource } from 'tillgate/generations';
import { problemHandler, sendProblem, type Logger } from 'tillgate';
import { clientsApi, listClients, registerClient, type ClientResource, type ClientWithSecret } from './clients-api';
import { keySet, metadata, oauthEndpoints } from './endpoints';
import { allowOnly, RequestError } from './errors';
import { openGenerations } from './generations';
import { adminGuard, tokenLimit } from './guards';
import { logRequests } from './log';
import { readAuthServerOptions, type AuthServerOptions } from './options';
import { Store } from './store';
import { newSigningKey, rotateKeys, type Context } from './tokens';

/** What a client registers with: the body of `POST /clients`. */
export interface ClientRegistration {
  readonly client_id: string;
  /** Free text. Default `''`. */
  readonly description?: string;
  /** One or more scopes, separated by spaces. */
  readonly scope: string;
}

/** The embedded token server; it does not listen by itself. */
export interface AuthServer {
  /** For `http.createServer()`, supertest, or `app.use()`. */
  readonly handler: RequestListener;
  /** Its changes, for a gate in this process: what `/generations` serves to the others. */
  readonly generations: GenerationSource;
  /** Registers a client, as `POST /clients` does. Rejects with `code` `invalid_request` or `client_exists`. */
  register(client: ClientRegistration): Promise<ClientWithSecret>;
  /** The registered clients, as `GET /clients` shows them. */
  list(): ClientResource[];
  /** Signs with a new key from now on; earlier keys stay published until their last token has expired. */
  rotateKeys(): Promise<void>;
  /** Resolves with the reason when this server has stopped by itself: another process has changed its data directory. */
  readonly stopped: Promise<Error>;
  /** Ends the open polls and finishes the pending changes. */
  close(): Promise<void>;
}

/**
 * Makes the embedded token server, for development: client credentials grant, registration, generations, key set, kept
 * in a directory. No change is lost once the response says that it was made, not even by `kill -9`. The directory belongs
 * to one process at a time: the one that finds the state changed by another responds with 503 from then on.
 *
 * @throws TypeError when an option is wrong, and always in production.
 * @throws Error when the data directory cannot be used, or its state cannot be read.
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { createAuthServer } from '@tillgate/cli';
 *
 * async function start() {
 *   const issuer = 'http://127.0.0.1:4000';
 *   const tokens = await createAuthServer({ issuer, audience: 'http://127.0.0.1:3000', dataDir: '.tillgate' });
 *   createServer(tokens.handler).listen(4000, '127.0.0.1');
 * }
 * ```
 */
export async function createAuthServer(options: AuthServerOptions): Promise<AuthServer> {
  const settings = readAuthServerOptions(options);
  const newKeys = async () => ({ signing: await newSigningKey(), retired: [] });
  let onStop: (reason: Error) => void = () => undefined;
  const stopped = new Promise<Error>((resolve) => (onStop = resolve));
  const store = await Store.open({ ...settings, newKeys, onStop });
  const generations = await openGenerations(settings, store);
  const limit = tokenLimit(settings.rateLimit);
  const context: Context = { settings, store, generations, limit, lastIssued: new Map() };

  return {
    handler: createApp(context),
    generations: generations.source,
    // Async, so that a wrong client is a rejection.
    register: async (client) => registerClient(context, client),
    list: () => listClients(store.state),
    rotateKeys: () => rotateKeys(context),
    stopped,
    async close() {
      limit.close();
      generations.close();
      await store.close();
    },
  };
}

/** Makes the token server's app: what clients and resource servers call first, then what only operators call. */
function createApp(context: Context): Express {
  const { settings, generations, store } = context;
  const issuerPath = new URL(settings.issuer).pathname.replace(/\/$/, '');
  const readOnly = allowOnly('GET, HEAD');
  const routes = Router();

  routes.use(function refuseWhenStopped(_req, _res, next) {
    store.requireOwn();
    next();
  });
  routes.use('/connect/token', allowPages);
  routes.use('/connect', oauthEndpoints(context));
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    // The path of an issuer follows the well-known URL (RFC 8414 section 3.1).
    const urls = [`/.well-known/${name}`, `/.well-known/${name}${literal(issuerPath)}`];
    routes.route(urls).get(metadata(context)).all(readOnly);
  }
  routes.route('/.well-known/openid-configuration/jwks').get(keySet(context)).all(readOnly);

  routes.use(['/clients', '/generations'], doNotStore, adminGuard(settings.adminToken));
  routes.use('/clients', clientsApi(context));
  routes.use('/generations', generations.handler);

  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.use(
    skipIfResponded,
    logRequests(settings.logger, () => store.state),
    helmet(),
  );
  // A proxy may or may not remove the path of the issuer.
  if (issuerPath !== '') app.use(literal(issuerPath), routes);
  app.use(routes, refuseUnknownUrl, sendProblems(settings.logger));
  return app;
}

const allowAnyOrigin = cors({
  methods: 'POST',
  allowedHeaders: ['Authorization', 'Content-Type', 'X-Requested-With'],
  exposedHeaders: 'Retry-After',
});

/** Lets pages ask for tokens, such as the API reference page: no browser adds the credentials by itself. */
const allowPages: RequestHandler = function allowPages(req, res, next) {
  if (req.headers.origin === undefined) return next();
  allowAnyOrigin(req, res, next);
};

/** A path in which Express finds no parameters and wildcards. */
function literal(path: string): string {
  return path.replace(/[{}()[\]+?!:*\\]/g, '\\$&');
}

/** An app that mounts this one may have responded already, after a time limit for example. */
const skipIfResponded: RequestHandler = (_req, res, next) => {
  if (!res.headersSent) next();
};

/** Responses hold secrets and tokens. */
const doNotStore: RequestHandler = (_req, res, next) => {
  res.set('Cache-Control', 'no-store');
  next();
};

const refuseUnknownUrl: RequestHandler = () => {
  throw new RequestError(404, 'not_found', 'There is nothing at this URL.');
};

/** Makes the last error handler: every error becomes a problem body; unexpected ones expose no detail. */
function sendProblems(logger: Logger): ErrorRequestHandler {
  const handleOther = problemHandler({ logger });
  return function handleError(error, req, res, next) {
    // Another middleware has responded in the meantime, a time limit for example.
    if (res.writableEnded) return;
    if (!(error instanceof RequestError)) return handleOther(error, req, res, next);
    const { status, code, message, headers } = error;
    res.locals['refusal'] = error;
    sendProblem(req, res, { status, code, detail: message, headers });
  };
}
