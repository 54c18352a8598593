import type { RequestListener } from 'node:http';
import express, { Router } from 'express';
import type { Express, RequestHandler } from 'express';
import { adminGuard } from './admin-guard';
import { clientsApi } from './clients-api';
import { discovery } from './discovery';
import { generationsFeed } from './generations-feed';
import type { GenerationsStream } from './generations-stream';
import { introspectionEndpoint } from './introspection';
import { issuerPath, pathOfIssuer } from './issuer-path';
import { serve } from './methods';
import type { OAuthHandler, RequestLimit } from './oauth-endpoint';
import type { AuthServerSettings } from './options';
import { RefusedRequest, refusalHandler } from './refused-request';
import type { Registry } from './registry';
import { securityHeaders } from './security-headers';
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
  readonly limit: RequestLimit | undefined;
}

/**
 * Puts the addresses together. The one that is called all day long is answered in front of Express, whose routing costs
 * more than a token; its other spellings are for Express to recognise, and lead to the same endpoint.
 */
export function createApp(parts: AppParts): RequestListener {
  const { settings, store, tokens, limit } = parts;
  const setSecurityHeaders = securityHeaders();
  const token = tokenEndpoint({ state: () => store.state, tokens, limit });
  const app = otherAddresses(parts, token);
  const refuse = refusalHandler(settings.logger);
  const tokenAddresses = new Set(['/connect/token', `${pathOfIssuer(settings.issuer)}/connect/token`]);

  return function answerRequest(req, res) {
    setSecurityHeaders(res);
    if (tokenAddresses.has(req.url ?? '')) void token(req, res, (error) => refuse(error, req, res, () => {}));
    else app(req, res);
  };
}

function otherAddresses(parts: AppParts, token: OAuthHandler): Express {
  const { settings, store } = parts;
  const app = express();
  app.disable('x-powered-by');
  // Entity tags are versions and revisions here, set by hand.
  app.disable('etag');
  app.use(issuerPath(settings.issuer));
  app.use('/connect', clientRoutes(parts, token));
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
function clientRoutes({ store, tokens }: AppParts, token: OAuthHandler): Router {
  const router = Router();
  router.all('/token', token);
  router.all('/introspect', introspectionEndpoint({ state: () => store.state, tokens }));
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
