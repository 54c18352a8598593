import express from 'express';
import type { Express } from 'express';
import helmet from 'helmet';
import { authenticate, problemHandler, protectedResourceMetadata } from '../index';
import { authenticateOptions } from '../settings/authenticate-options';
import type { AuthenticateOptions, Gate, GateStatus, Logger } from '../index';
import type { Settings } from '../settings/settings';
import { assertAgreement } from '../openapi/agreement';
import { loadContract } from '../openapi/load';
import { commerceRouter } from './commerce/router';
import type { CommerceRouterOptions } from './commerce/router';
import { routes, SCOPES } from './commerce/routes';
import { healthRoutes } from './health';
import type { Readiness } from './health';
import { createLog, logRequest } from './log';
import { notFound, problemPages, problemTypesOf } from './problem-pages';
import { clientRateLimit } from './rate-limit';
import { requestId } from './request-id';
import { requestObserver } from './request-observer';
import type { RequestEvent } from './request-observer';
import { requestValidation } from './request-validation';
import type { RedisCommands } from '../rate-limit/shared-store';

/** Options of {@link createApp}. */
export interface AppOptions {
  /** As `readSettings()` gives them. */
  readonly settings: Settings;
  /** Default: JSON lines on stderr, at the level of the settings. */
  readonly logger?: Logger;
  /** Routers that take the place of placeholders, by resource: `{ orders: myOrders }`. */
  readonly replace?: CommerceRouterOptions['replace'];
  /** What the gate relies on, where the settings do not say all of it. Default: `authenticateOptions(settings)`. */
  readonly gate?: AuthenticateOptions;
  /** Connects to the Redis that counts requests for all processes. Default: each process counts for itself. */
  readonly connectToRedis?: (() => RedisCommands) | undefined;
  /** Told about every request, beside the log; for metrics. */
  readonly onRequest?: ((event: RequestEvent) => void) | undefined;
  /** Milliseconds since the epoch. */
  readonly clock?: () => number;
}

/** The commerce API, not listening yet. */
export interface App {
  /** For `http.createServer()`, or to be mounted in another app. */
  readonly handler: Express;
  readonly gate: Gate;
  readiness(): Readiness;
  /** From here on `/readyz` answers 503, so that no new requests are sent. */
  drain(): void;
  /** Stops timers and connections. */
  close(): Promise<void>;
}

/** Forms are read only to find tokens in them, which is a mistake of the caller's. */
const FORM_LIMIT = '16kb';

/**
 * Makes the commerce API: what happens to a request stands here from top to bottom.
 *
 * @throws Error when the routes, their scopes and openapi.yaml disagree
 * @throws ConfigurationError when the settings name no issuer
 */
export function createApp(options: AppOptions): App {
  const { settings, replace = {}, onRequest, clock = Date.now } = options;
  const logger = options.logger ?? createLog({ level: settings.logLevel });
  const contract = loadContract();
  const router = commerceRouter({ replace, clock });
  const problemTypes = problemTypesOf(settings.baseUrl);
  assertAgreement(contract, routes(), SCOPES, router);

  const observer = requestObserver((event) => {
    logRequest(logger, event);
    onRequest?.(event);
  }, clock);
  const gateOptions: AuthenticateOptions = options.gate ?? authenticateOptions(settings);
  const gate = authenticate({
    resource: settings.baseUrl,
    problemTypes,
    ...gateOptions,
    unguarded: 'refuse',
    // A refusal goes into the line of its request: one line per request.
    logger: warningsOf(logger),
    onDecision(decision, request) {
      const { reason, error } = decision;
      if (reason !== undefined) observer.refused(request, { reason, detail: error?.privateDetail });
      gateOptions.onDecision?.(decision, request);
    },
  });
  const limit = clientRateLimit({
    settings,
    connectToRedis: options.connectToRedis,
    logger,
    onLimited: (req) => observer.refused(req, { reason: 'rate_limited' }),
  });
  let draining = false;
  const readiness = (): Readiness => readinessOf(gate.status(), draining);

  const v1 = express.Router();
  v1.use(express.urlencoded({ extended: false, limit: FORM_LIMIT }));
  v1.use(gate);
  v1.use(limit.handler);
  v1.use(requestValidation(contract));
  v1.use(router);

  const app = express();
  app.use(requestId());
  app.use(observer.handler);
  app.use(helmet());
  app.use(healthRoutes(readiness, problemTypes));
  app.use(problemPages());
  app.use(
    protectedResourceMetadata({
      resource: settings.baseUrl,
      authorizationServers: gate.status().issuers.map(({ issuer }) => issuer),
      scopes: SCOPES,
    }),
  );
  app.use('/v1', v1);
  app.use(notFound(problemTypes));
  app.use(problemHandler({ logger, problemTypes }));

  return {
    handler: app,
    gate,
    readiness,
    drain: () => void (draining = true),
    async close() {
      limit.close();
      await gate.close();
    },
  };
}

function readinessOf({ ready, issuers }: GateStatus, draining: boolean): Readiness {
  const [issuer] = issuers;
  const components = { keys: issuer?.keys.state ?? 'none', generations: issuer?.generations?.source ?? 'off' };
  return { ready: ready && !draining, draining, components };
}

function warningsOf(logger: Logger): Logger {
  return {
    info() {},
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
}
