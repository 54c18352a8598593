import { basename, resolve } from 'node:path';
import type cors from 'cors';
import express from 'express';
import type { Express, RequestHandler, Router } from 'express';
import helmet from 'helmet';
import {
  allOperations,
  assertAgreement,
  CONTRACT_FILE,
  layersOf,
  loadContract,
  operationsOf,
} from '@tillgate/testing/internal';
import type { ContractDocument } from '@tillgate/testing/internal';
import { authenticateOptions } from 'tillgate/env';
import type { Settings } from 'tillgate/env';
import { didYouMean, isObject, option, readOptions, refuseOption, requirePackages } from 'tillgate/internal';
import type { OptionPlace, TableOf } from 'tillgate/internal';
import { authenticate, problemHandler, protectedResourceMetadata } from 'tillgate';
import type { AuthenticateOptions, Gate, GateStatus, Logger } from 'tillgate';
import { healthRoutes } from './admin';
import type { Readiness } from './admin';
import { commerceRouter } from './commerce/router';
import { RESOURCES } from './commerce/resources';
import type { ResourceName } from './commerce/resources';
import { docsPage } from './docs-page';
import { createLog, logRequest, requestId, requestObserver, warningsOf } from './log';
import type { RequestEvent } from './log';
import { frontPage, notFound, problemPages, problemTypesOf } from './pages';
import { requestValidation } from './request-validation';
import { clientRateLimit } from './rate-limit';

/** Options of {@link createApp}. */
export interface AppOptions {
  /** From `readSettings()`. */
  readonly settings: Settings;
  /** Default: JSON lines on stderr, at the level of the settings. */
  readonly logger?: Logger;
  /**
   * Your OpenAPI 3.1 document, a YAML or JSON file or its parsed content: requests are validated by it, and the start fails
   * where routes or guards differ from it. Only resources that it has get a placeholder. Default: the openapi.yaml of this
   * package.
   */
  readonly document?: string | object | undefined;
  /**
   * Your routers, each with its own guards and with its operations in `document`: `{ 'gift-cards': giftCards }` is mounted
   * at `/v1/gift-cards`. One of the name of a placeholder replaces it.
   */
  readonly routers?: Readonly<Record<string, Router>> | undefined;
  /** Routers that replace placeholders, by resource: `{ orders: myOrders }`. As `routers`, but only those names. */
  readonly replace?: { readonly [Name in ResourceName]?: Router };
  /** Options of the gate. Default: `authenticateOptions(settings)`. */
  readonly gate?: AuthenticateOptions;
  /** Called for every request, in addition to the log; for metrics. */
  readonly onRequest?: ((event: RequestEvent) => void) | undefined;
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

/** Express routers, by a name that `refuse` accepts. */
function routersOption(refuse: (name: string, at: OptionPlace) => void) {
  return option<Readonly<Record<string, Router>>>('an object of Express routers', (given, at) => {
    if (!isObject(given)) return undefined;
    for (const [name, router] of Object.entries(given)) {
      refuse(name, at);
      const isRouter = typeof router === 'function' && layersOf(router) !== undefined;
      if (!isRouter) refuseOption({ ...at, name: `${at.name}.${name}` }, 'an Express Router', router);
    }
    return given as Readonly<Record<string, Router>>;
  });
}

function refuseSegment(name: string, { factory }: OptionPlace): void {
  if (/^[\w~-][\w.~-]*$/.test(name)) return;
  const expected = 'expected one segment of a path, such as "gift-cards" for /v1/gift-cards';
  throw new TypeError(`${factory}(): option "routers" has the name ${JSON.stringify(name)}; ${expected}`);
}

function refuseUnknownResource(name: string, { factory }: OptionPlace): void {
  const known = RESOURCES.map(({ path }) => path);
  if (known.some((path) => path === name)) return;
  const hint = `${didYouMean(name, known)} A resource of your own goes into "routers"`;
  throw new TypeError(`${factory}(): option "replace" names no resource: ${JSON.stringify(name)}${hint}`);
}

const OPTIONS = {
  settings: option.required(objectOption<Settings>('what readSettings() returns')),
  logger: option.withMethods<Logger>(['info', 'warn', 'error'], 'an object with the methods info, warn and error'),
  document: option('the path of an OpenAPI document or its parsed content', (given) =>
    (typeof given === 'string' && given !== '') || isObject(given) ? given : undefined,
  ),
  routers: routersOption(refuseSegment),
  replace: routersOption(refuseUnknownResource),
  gate: objectOption<AuthenticateOptions>('an object with the options of authenticate()'),
  onRequest: option.callable<AppOptions['onRequest']>(),
  clock: option.callable<() => number>(Date.now),
} satisfies TableOf<AppOptions>;

/** Forms are parsed only to refuse tokens in them. */
const FORM_LIMIT = '16kb';

/**
 * Makes the commerce API. Requests pass through its middleware from top to bottom.
 *
 * @throws TypeError when an option is wrong
 * @throws ConfigurationError when the routes, their guards and the document disagree
 * @throws ConfigurationError when the settings name no issuer
 */
export function createApp(options: AppOptions): App {
  const given = readOptions('createApp', options, OPTIONS);
  const { settings, document, routers, replace, onRequest, clock } = given;
  const docs = !settings.production;
  const { logger = createLog({ level: settings.logLevel }) } = given;
  const contract = loadContract(document);
  // `undefined` for parsed content.
  const file = typeof document === 'object' ? undefined : resolve(document ?? CONTRACT_FILE);
  const problemTypes = problemTypesOf(settings.baseUrl);
  const validation = requestValidation(contract);

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
  const limit = clientRateLimit(settings, logger, (req) => observer.refused(req, { reason: 'rate_limited' }));
  let draining = false;
  const readiness = (): Readiness => readinessOf(gate.status(), draining);

  const v1 = express.Router();
  // Before the gate, so that pages can read its refusals too.
  if (settings.corsOrigins) v1.use(allowPagesOf(settings.corsOrigins));
  v1.use(express.urlencoded({ extended: false, limit: FORM_LIMIT }));
  v1.use(gate);
  v1.use(limit.handler);
  v1.use(validation);
  v1.use(commerceRouter({ ...replace, ...routers }, document === undefined ? RESOURCES : resourcesIn(contract), clock));

  const app = express();
  app.use(requestId());
  app.use(observer.handler);
  app.use(helmet());
  app.use(healthRoutes(readiness, problemTypes));
  const [issuer] = gate.status().issuers.map((one) => one.issuer);
  app.use(frontPage({ contract, file, baseUrl: settings.baseUrl, issuer, docs }));
  if (docs) app.use(docsPage(contract, settings.baseUrl, settings.authUrl ?? issuer));
  app.use(problemPages());
  app.use(protectedResourceMetadata(gate));
  app.use('/v1', v1);
  app.use(notFound(problemTypes));
  app.use(problemHandler({ logger, problemTypes }));

  async function close(): Promise<void> {
    limit.close();
    await gate.close();
  }

  try {
    const names = { source: 'the app', document: file === undefined ? 'the document' : basename(file) };
    assertAgreement(app, { names, document: contract, operations: allOperations(contract) });
  } catch (error) {
    void close();
    throw error;
  }
  return {
    handler: app,
    gate,
    readiness,
    drain: () => void (draining = true),
    close,
  };
}

/** Headers of responses that a page of another origin may read, beyond those that the Fetch standard names. */
const EXPOSED = ['WWW-Authenticate', 'DPoP-Nonce', 'Retry-After', 'RateLimit', 'RateLimit-Policy', 'X-Request-Id'];
/** How long a browser need not ask again, in seconds. */
const PREFLIGHT_AGE_SECONDS = 600;

/** Lets pages of these origins call the API (Fetch standard, CORS); tokens are in a header, so no cookie is allowed. */
function allowPagesOf(origins: readonly string[]): RequestHandler {
  requirePackages('TILLGATE_CORS_ORIGINS', ['cors']);
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import would make it a required peer
  const allow = require('cors') as typeof cors;
  return allow({ origin: [...origins], exposedHeaders: EXPOSED, maxAge: PREFLIGHT_AGE_SECONDS });
}

/** The resources of which the document has an operation. */
function resourcesIn(contract: ContractDocument): (typeof RESOURCES)[number][] {
  const segments = new Set(operationsOf(contract).map(({ path }) => path.split('/')[2]));
  return RESOURCES.filter(({ path }) => segments.has(path));
}

function readinessOf({ ready, issuers }: GateStatus, draining: boolean): Readiness {
  const [issuer] = issuers;
  const components = { keys: issuer?.keys.state ?? 'none', generations: issuer?.generations?.source ?? 'off' };
  return { ready: ready && !draining, draining, components };
}
