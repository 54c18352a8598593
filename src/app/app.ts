import cors from 'cors';
import express, { Router } from 'express';
import type { Express } from 'express';
import helmet from 'helmet';
import { authenticate, problemHandler, protectedResourceMetadata } from 'tillgate';
import type { Gate } from 'tillgate';
import { commerceRouter } from './commerce/router';
import { inviteBody, unlessWaiting } from './continue';
import { loadContract } from './contract';
import { docsPage } from './docs-page';
import { healthRoutes } from './health';
import { logRequests, noteDecision, requestId } from './log';
import { frontPage, problemPages, withoutSlash } from './pages';
import { clientRateLimit } from './rate-limit';
import { resourceMetadata } from './resource-metadata';
import type { AppSettings } from './settings';

/** The commerce API; it does not listen. */
export interface CommerceApp {
  readonly app: Express;
  readonly gate: Gate;
  /** Makes `/readyz` respond with 503, so that no new requests are sent. */
  readonly drain: () => void;
  /** Stops timers and connections. */
  readonly close: () => Promise<void>;
}

/** Makes the commerce API. Requests pass through its middleware from top to bottom. */
export function createApp(settings: AppSettings, clock?: () => number): CommerceApp {
  const { baseUrl, corsOrigins, log, production } = settings;
  const contract = loadContract();
  const problemTypes = `${withoutSlash(baseUrl)}/problems/`;

  const gate = authenticate({
    resource: baseUrl,
    problemTypes,
    ...settings.gate,
    // A route without a guard gets 500 instead of its response.
    unguarded: 'refuse',
    onDecision: noteDecision,
    // Refusals are logged with their requests.
    logger: { info() {}, warn: log.warn.bind(log), error: log.error.bind(log) },
  });
  const limit = clientRateLimit(settings);
  let isDraining = false;

  const v1 = Router();
  // Before the gate, so that pages can read its refusals too.
  if (corsOrigins) v1.use(cors({ origin: [...corsOrigins], exposedHeaders: EXPOSED, maxAge: PREFLIGHT_AGE_SECONDS }));
  // Forms are parsed only to refuse tokens in them.
  v1.use(unlessWaiting(express.urlencoded({ extended: false, limit: '16kb' })));
  v1.use(gate);
  v1.use(limit.handler);
  v1.use(inviteBody);
  v1.use(commerceRouter(contract, clock));

  const app = express();
  app.set('trust proxy', settings.trustProxy);
  app.use(requestId);
  app.use(logRequests(log));
  app.use(helmet());
  app.use(
    healthRoutes(
      () => gate.status(),
      () => isDraining,
      problemTypes,
    ),
  );
  app.use(frontPage(contract, settings));
  if (!production) app.use(docsPage(contract, settings));
  app.use(problemPages());
  app.use(resourceMetadata(gate, contract, baseUrl));
  app.use(protectedResourceMetadata(gate));
  app.use('/v1', v1);
  app.use((_req, _res, next) => next({ status: 404 }));
  app.use(problemHandler({ logger: log, problemTypes }));

  return {
    app,
    gate,
    drain: () => void (isDraining = true),
    async close() {
      limit.close();
      await gate.close();
    },
  };
}

/** Headers of responses that a page of another origin may read, beyond those that the Fetch standard names. */
const EXPOSED = ['WWW-Authenticate', 'DPoP-Nonce', 'Retry-After', 'RateLimit', 'RateLimit-Policy', 'X-Request-Id'];
/** How long a browser need not ask again. */
const PREFLIGHT_AGE_SECONDS = 600;
