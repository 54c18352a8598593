import express from 'express';
import type { Express, RequestHandler } from 'express';
import helmet from 'helmet';
import { adminGuard } from './admin-guard';
import { clientsApi } from './clients/api';
import type { Registry } from './clients/registry';
import { generationsFeed } from './generations/feed';
import type { GenerationsStream } from './generations/stream';
import { keySetEndpoint, metadataEndpoint, stripIssuerPath } from './oauth/discovery';
import { sendOAuthError } from './oauth/error';
import { introspectionEndpoint } from './oauth/introspection';
import { oauthLimits } from './oauth/limits';
import { tokenEndpoint } from './oauth/token-endpoint';
import type { Tokens } from './oauth/tokens';
import type { AuthServerSettings } from './options';
import { allowOnly, refusalHandler, RefusedRequest } from './problem';
import type { Store } from './storage/store';

/** What the routes lead to. */
export interface AppParts {
  readonly settings: AuthServerSettings;
  readonly store: Store;
  readonly registry: Registry;
  readonly tokens: Tokens;
  /** Rotates the signing key; resolves with the `kid` of the new one. */
  readonly rotateKeys: () => Promise<string>;
  readonly stream: GenerationsStream;
}

/** Makes the token server's app: what clients and resource servers call first, then what only operators call. */
export function createApp({ settings, store, registry, tokens, rotateKeys, stream }: AppParts): Express {
  const state = () => store.state;
  const limits = oauthLimits(settings.rateLimit, settings.clock);
  const token = tokenEndpoint({ state, tokens, limit: limits.tokens });
  const introspect = introspectionEndpoint({ state, tokens, limit: limits.guesses });
  const metadata = metadataEndpoint({ ...settings, state });
  const keySet = keySetEndpoint({ ...settings, state });
  const readOnly = allowOnly('GET, HEAD');

  const app = express();
  // Entity tags are versions and revisions here, set explicitly.
  app.disable('x-powered-by').disable('etag');
  app.use(skipIfResponded, helmet(), stripIssuerPath(settings.issuer));

  app.all('/connect/token', ...token);
  app.all('/connect/introspect', ...introspect);
  app.use('/connect/introspect', limits.countGuess);
  app.use('/connect', sendOAuthError);
  app.route('/.well-known/oauth-authorization-server').get(metadata).all(readOnly);
  app.route('/.well-known/openid-configuration').get(metadata).all(readOnly);
  app.route('/.well-known/openid-configuration/jwks').get(keySet).all(readOnly);

  app.use(['/clients', '/generations', '/keys'], doNotStore, adminGuard(settings.adminToken));
  app.use('/clients', clientsApi({ registry, tokens, scopes: settings.scopes }));
  app.route('/generations').get(generationsFeed(store, settings.schedule)).all(readOnly);
  app.route('/generations/stream').get(stream.handler).all(readOnly);
  app
    .route('/keys/rotate')
    .post(async (_req, res) => void res.status(201).json({ kid: await rotateKeys() }))
    .all(allowOnly('POST'));

  app.use(refuseUnknownUrl);
  app.use(refusalHandler(settings.logger));
  return app;
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
  throw new RefusedRequest({ status: 404, code: 'not_found', detail: 'There is nothing at this URL.' });
};
