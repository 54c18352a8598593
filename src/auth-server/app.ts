import express, { Router } from 'express';
import type { Express, RequestHandler } from 'express';
import helmet from 'helmet';
import { adminGuard } from './admin-guard';
import { clientsApi } from './clients/api';
import type { Context } from './context';
import { allowOnly, RequestError, sendProblems } from './errors';
import { keySet, metadata } from './oauth/discovery';
import { oauthEndpoints } from './oauth/endpoints';
import { logRequests } from './request-log';
import { rotateKeys } from './storage/keys';

/** Makes the token server's app: what clients and resource servers call first, then what only operators call. */
export function createApp(context: Context): Express {
  const { settings, store, generations } = context;
  const issuerPath = new URL(settings.issuer).pathname.replace(/\/$/, '');
  const readOnly = allowOnly('GET, HEAD');
  const routes = Router();

  routes.use('/connect/token', allowPagesOf(settings.browserOrigins));
  routes.use('/connect', oauthEndpoints(context));
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    // The path of an issuer follows the well-known URL (RFC 8414 section 3.1).
    const urls = [`/.well-known/${name}`, `/.well-known/${name}${literal(issuerPath)}`];
    routes.route(urls).get(metadata(context)).all(readOnly);
  }
  routes.route('/.well-known/openid-configuration/jwks').get(keySet(context)).all(readOnly);

  routes.use(['/clients', '/generations', '/keys'], doNotStore, adminGuard(settings));
  routes.use('/clients', clientsApi(context));
  routes.use('/generations', generations.handler);
  routes
    .route('/keys/rotate')
    .post(async (_req, res) => void res.status(201).json({ kid: await rotateKeys(store, settings) }))
    .all(allowOnly('POST'));

  const app = express();
  // Entity tags are versions here, set explicitly.
  app.disable('x-powered-by').disable('etag');
  app.use(skipIfResponded, logRequests(context), helmet());
  // A proxy may or may not remove the path of the issuer.
  if (issuerPath !== '') app.use(literal(issuerPath), routes);
  app.use(routes, refuseUnknownUrl, sendProblems(settings.logger));
  return app;
}

/**
 * Lets pages of these origins call an endpoint (Fetch standard, section 3.2). Nothing is gained by forging an origin: the
 * endpoint asks for credentials that no browser adds by itself.
 */
function allowPagesOf(origins: readonly string[]): RequestHandler {
  return function allowPages(req, res, next) {
    const { origin } = req.headers;
    if (origins.length > 0) res.vary('Origin');
    if (origin === undefined || !origins.includes(origin)) return next();
    res.set('Access-Control-Allow-Origin', origin);
    if (req.method !== 'OPTIONS') return next();
    res.set('Access-Control-Allow-Methods', 'POST');
    res.set('Access-Control-Allow-Headers', 'authorization, content-type, x-requested-with');
    res.status(204).end();
  };
}

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
