import express, { Router } from 'express';
import type { Express, RequestHandler } from 'express';
import helmet from 'helmet';
import { adminGuard } from './admin-guard';
import { clientsApi } from './clients-api';
import { discovery } from './discovery';
import { generationsFeed } from './generations-feed';
import type { GenerationsStream } from './generations-stream';
import { introspectionEndpoint } from './introspection';
import { issuerPath } from './issuer-path';
import { serve } from './methods';
import type { OAuthHandler } from './oauth-endpoint';
import { answerOAuthError } from './oauth-error';
import type { AuthServerSettings } from './options';
import { RefusedRequest, refusalHandler } from './refused-request';
import type { Registry } from './registry';
import type { Store } from './store';
import { tokenEndpoint } from './token-endpoint';
import type { Tokens } from './tokens';

/** The parts that the addresses lead to. */
export interface AppParts {
  readonly settings: AuthServerSettings;
  readonly store: Store;
  readonly registry: Registry;
  readonly tokens: Tokens;
  readonly rotate: () => Promise<string>;
  readonly stream: GenerationsStream;
  readonly limit: OAuthHandler | undefined;
}

/** Puts the addresses together. */
export function createApp(parts: AppParts): Express {
  const { settings, store } = parts;
  const app = express();
  app.disable('x-powered-by');
  // Entity tags are versions and revisions here, set by hand.
  app.disable('etag');
  app.use(helmet(), issuerPath(settings.issuer));
  app.use('/connect', clientRoutes(parts));
  app.use(discovery({ ...settings, knownScopes: settings.scopes, state: () => store.state }));
  app.use(['/clients', '/generations', '/keys'], doNotStore, adminGuard(settings.adminToken));
  app.use(operatorRoutes(parts));
  app.use(function refuseAddress() {
    throw new RefusedRequest({ status: 404, code: 'not_found', detail: 'There is nothing at this address.' });
  });
  app.use(refusalHandler(settings.logger));
  return app;
}

/** What clients and resource servers call. */
function clientRoutes({ store, tokens, limit }: AppParts): Router {
  const router = Router();
  const state = () => store.state;
  router.all('/token', ...tokenEndpoint({ state, tokens, limit }));
  router.all('/introspect', ...introspectionEndpoint({ state, tokens }));
  router.use(answerOAuthError);
  return router;
}

/** What only operators call. */
function operatorRoutes({ settings, store, registry, tokens, rotate, stream }: AppParts): Router {
  const router = Router();
  router.use('/clients', clientsApi({ registry, tokens, knownScopes: settings.scopes }));
  serve(router, '/generations', { get: generationsFeed(store, settings.schedule) });
  serve(router, '/generations/stream', { get: stream.handler });
  serve(router, '/keys/rotate', {
    post: async function rotateKeys(_req, res) {
      res.status(201).json({ kid: await rotate() });
    },
  });
  return router;
}

/** Answers hold secrets and tokens. */
const doNotStore: RequestHandler = function doNotStore(_req, res, next) {
  res.set('Cache-Control', 'no-store');
  next();
};
