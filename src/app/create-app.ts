import express from 'express';
import type { Express, Request, RequestHandler, Router } from 'express';
import { rateLimit } from 'express-rate-limit';
import helmet from 'helmet';
import { isObject } from '../core/objects';
import { option, readOptions } from '../core/options';
import type { TableOf } from '../core/options';
import { authenticate, problemHandler, protectedResourceMetadata, sendProblem } from '../index';
import { authenticateOptions } from '../settings/settings';
import type { AuthenticateOptions, Gate, GateStatus, Logger } from '../index';
import type { Settings } from '../settings/settings';
import { assertAgreement } from '../openapi/audit';
import { loadContract } from '../openapi/document';
import { healthRoutes } from './admin';
import type { Readiness } from './admin';
import { commerceRouter } from './commerce/router';
import { routes, SCOPES } from './commerce/resources';
import type { ResourceName } from './commerce/resources';
import { docsPage } from './docs/docs-page';
import type { DocsOptions } from './docs/docs-page';
import { createLog, logRequest, requestId, requestObserver, warningsOf } from './log';
import type { RequestEvent } from './log';
import { frontPage, notFound, problemPages, problemTypesOf, titleOf } from './pages';
import { requestValidation } from './request-validation';
import { LocalRateStore, SharedRateStore } from '../rate-limit/stores';
import type { RedisCommands } from '../rate-limit/stores';

/** Options of {@link createApp}. */
export interface AppOptions {
  /** From `readSettings()`. */
  readonly settings: Settings;
  /** Default: JSON lines on stderr, at the level of the settings. */
  readonly logger?: Logger;
  /** Routers that replace placeholders, by resource: `{ orders: myOrders }`. */
  readonly replace?: { readonly [Name in ResourceName]?: Router };
  /** Options of the gate. Default: `authenticateOptions(settings)`. */
  readonly gate?: AuthenticateOptions;
  /** Connects to the Redis that counts requests for all processes. Default: each process counts its own. */
  readonly connectToRedis?: (() => RedisCommands) | undefined;
  /** Called for every request, in addition to the log; for metrics. */
  readonly onRequest?: ((event: RequestEvent) => void) | undefined;
  /** The documentation page at `{base_url}/docs`. Default: served, except in production; `true` serves it there too. */
  readonly docs?: boolean | DocsOptions | undefined;
  /** Milliseconds since the epoch. */
  readonly clock?: () => number;
}

/** The commerce API; it does not listen. */
export interface App {
  /** For `http.createServer()`, or to mount in another app. */
  readonly handler: Express;
  readonly gate: Gate;
  readiness(): Readiness;
  /** Makes `/readyz` respond with 503, so that no new requests are sent. */
  drain(): void;
  /** Stops timers and connections. */
  close(): Promise<void>;
}

function objectOption<Value>(expected: string) {
  return option(expected, (given) => (isObject(given) ? (given as Value) : undefined));
}

const OPTIONS = {
  settings: option.required(objectOption<Settings>('what readSettings() returns')),
  logger: option.withMethods<Logger>(['info', 'warn', 'error'], 'an object with the methods info, warn and error'),
  replace: objectOption<NonNullable<AppOptions['replace']>>('an object of routers, by resource'),
  gate: objectOption<AuthenticateOptions>('an object with the options of authenticate()'),
  connectToRedis: option.callable<AppOptions['connectToRedis']>(),
  onRequest: option.callable<AppOptions['onRequest']>(),
  docs: option('true, false or an object', (given) => {
    return typeof given === 'boolean' || isObject(given) ? given : undefined;
  }),
  clock: option.callable<() => number>(Date.now),
} satisfies TableOf<AppOptions>;

/** Forms are parsed only to refuse tokens in them. */
const FORM_LIMIT = '16kb';

/**
 * Makes the commerce API. Requests pass through its middleware from top to bottom.
 *
 * @throws TypeError when an option is wrong
 * @throws Error when the routes, their scopes and openapi.yaml disagree
 * @throws ConfigurationError when the settings name no issuer
 */
export function createApp(options: AppOptions): App {
  const given = readOptions('createApp', options, OPTIONS);
  const { settings, replace, connectToRedis, onRequest, clock } = given;
  const { docs = !settings.production } = given;
  const { logger = createLog({ level: settings.logLevel }) } = given;
  const contract = loadContract();
  const router = commerceRouter(replace, clock);
  const problemTypes = problemTypesOf(settings.baseUrl);
  assertAgreement(contract, routes(), SCOPES, router);

  const observer = requestObserver((event) => {
    logRequest(logger, event);
    onRequest?.(event);
  }, clock);
  const gateOptions: AuthenticateOptions = given.gate ?? authenticateOptions(settings);
  const { onDecision } = gateOptions;
  const gate = authenticate({
    resource: settings.baseUrl,
    problemTypes,
    ...gateOptions,
    unguarded: 'refuse',
    // Refusals are logged with their request.
    logger: warningsOf(logger),
    onDecision(decision, request) {
      observer.decided(decision, request);
      onDecision?.(decision, request);
    },
  });
  const limit = clientRateLimit({
    settings,
    connectToRedis,
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
  const [issuer] = gate.status().issuers.map((one) => one.issuer);
  app.use(frontPage({ contract, baseUrl: settings.baseUrl, issuer, docs: docs !== false }));
  if (docs !== false) {
    const { baseUrl, authUrl = issuer } = settings;
    app.use(docsPage({ ...(docs !== true && docs), contract, baseUrl, authUrl }));
  }
  app.use(problemPages());
  app.use(
    // Whether the API is reached by TLS is up to its operator, so is the base URL.
    protectedResourceMetadata({ gate, scopes: SCOPES, resourceName: titleOf(contract), allowHttp: true }),
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

/**
 * Limits the requests per client (issuer and client id), with `RateLimit` and `RateLimit-Policy` headers on every response
 * (draft-ietf-httpapi-ratelimit-headers-08). Mount it after `authenticate()`: the id in an unverified token
 * means nothing.
 */
function clientRateLimit({
  settings,
  connectToRedis,
  logger,
  onLimited,
}: {
  readonly settings: Pick<Settings, 'rateLimit' | 'audience'>;
  /** Connects to the Redis that counts for several processes together; called once, if there is a quota. */
  readonly connectToRedis: (() => RedisCommands) | undefined;
  readonly logger: Logger;
  /** Called for every request that is refused. */
  readonly onLimited: (req: Request) => void;
}): { readonly handler: RequestHandler; readonly close: () => void } {
  if (settings.rateLimit === undefined) return { handler: (_req, _res, next) => next(), close: () => undefined };
  const { limit, windowMs } = settings.rateLimit;
  // APIs with the same audience are the same API: its processes share one quota.
  const prefix = `tillgate:rate-limit:${settings.audience} `;
  // Without a bound: there are only as many verified ids as clients.
  const store = connectToRedis ? new SharedRateStore(connectToRedis, prefix, logger) : new LocalRateStore();
  const handler = rateLimit({
    limit,
    windowMs,
    store,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    identifier: 'client',
    // Two issuers may have a client of the same id.
    keyGenerator: ({ auth }) => (auth ? JSON.stringify([auth.issuer, auth.clientId]) : ''),
    handler(req, res) {
      onLimited(req);
      sendProblem(req, res, {
        status: 429,
        code: 'rate_limited',
        detail: `This client may send ${limit} requests in ${windowMs / 1000} s; Retry-After says when to go on.`,
      });
    },
  });
  return { handler, close: () => store.shutdown() };
}
