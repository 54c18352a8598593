import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { SCOPES } from '@tillgate/app/internal';
import type { RunningApi } from '@tillgate/app';
import { describeRoutes, loadDocument, scopesOf } from '@tillgate/testing/internal';
import type { DescribedRoute } from '@tillgate/testing/internal';
import { authenticateOptions, readSettings } from 'tillgate/env';
import type { Environment, Settings } from 'tillgate/env';
import { attempt, isScopeToken, MISSING_ISSUER, withoutSlash } from 'tillgate/internal';
import { ConfigurationError } from 'tillgate';
import type { AuthServer, ClientWithSecret } from '../auth-server/index';
import type { ApiMeans } from '../console/console';
import { banner, tokenServerBanner } from '../banner';
import type { Samples } from '../banner';
import { CliError, EXIT, print } from '../command';
import type { CommandContext, CommandOptions } from '../command';
import { hasCredentials, keepCredential, keptCredential } from '../credentials';
import { send } from '../http';
import { startHosted } from '../load-app';
import { keepLocation } from '../location';
import { openLog } from '../log';
import { apiSettings, embeddedAddress, isEmbedded, usesEmbedded } from '../settings';
import { startTokenServer } from '../token-server';
import { runWatched } from '../watch';
import { authorizedGenerations } from '../sources';
import { obtainToken } from './token';

/** `tillgate dev`: the API and, unless an authorization server is configured, the embedded token server. */
export async function dev(context: CommandContext, options: CommandOptions): Promise<void> {
  if (options.watch) return runWatched(context.io);
  return options.tokenServer ? devTokenServer(context, options) : devBoth(context, options);
}

/** How long the report waits for keys and generations of an authorization server elsewhere. */
const PATIENCE_MS = 3_000;

async function devBoth(context: CommandContext, options: CommandOptions): Promise<void> {
  const { io } = context;
  const env = await withFreePorts(io.env);
  const named = readSettings(env);
  // Variables for `serve` may name the embedded token server: it is started unless it runs already.
  const given = usesEmbedded(named) && (await isFree(named.authPort)) ? embeddedSettings(named) : named;
  const settings = apiSettings(given);
  const scopes = clientScopes(options);
  const logger = openLog(io, options, given);
  const gate = { ...authenticateOptions(settings), fetch: io.fetch };
  const tokens = isEmbedded(given) ? await startTokenServer(given, logger, scopes) : undefined;
  const watching = tokens?.console;
  let routes: readonly DescribedRoute[] = [];
  let docsUrl: string | undefined;
  let api: RunningApi | undefined;
  let forget: (() => Promise<void>) | undefined;
  try {
    const appOptions = {
      settings,
      logger,
      // The gate reads the log of the embedded token server in this process: a change takes effect immediately.
      gate: tokens ? { ...gate, generationSource: tokens.generations, onDecision: watching?.onDecision } : gate,
    };
    api = await startHosted(options.app, appOptions, (handler) => {
      const described = attempt(() => describeRoutes(handler));
      routes = described?.routes ?? [];
      if (described?.served.includes('/docs')) docsUrl = `${withoutSlash(settings.baseUrl)}/docs/`;
      const means = { docsUrl, command: `${locate(given)} ${io.programName}`, call: callerOf(io, given) };
      return watching ? watching.observe(handler, means) : handler;
    });
    const clients = tokens ? await registerDemoClients(tokens.auth, given, scopes) : [];
    forget = await keepLocation(env, given);
    const ready = await isReadyWithin(api.app.gate.ready(), PATIENCE_MS);
    const { baseUrl, authUrl, issuer } = settings;
    const report = {
      // Since the start of the process: loading the program counts.
      ready_ms: Math.round(process.uptime() * 1000),
      base_url: baseUrl,
      auth_url: authUrl ?? issuer ?? '',
      embedded: tokens !== undefined,
      data_dir: settings.dataDir,
      admin_url: api.adminUrl,
      console_url: watching && `${authUrl}/console`,
      docs_url: docsUrl,
      clients,
      ready,
    };
    const samples = await samplesOf(routes, given);
    print(context, report, banner(report, io.programName, samples, locate(given)));
    await io.untilStopped();
  } finally {
    // Together: each may wait for its own drain deadline.
    await Promise.all([api?.close(), tokens?.close(), forget?.()]);
  }
}

/** The variable with which a command in any folder finds these servers, and the secrets of their clients. */
function locate({ dataDir }: Settings): string {
  const path = resolve(dataDir);
  return `TILLGATE_DATA_DIR=${/^[\w./:-]+$/.test(path) ? path : `'${path.replaceAll("'", `'"'"'`)}'`}`;
}

/** Requests that work with the demo clients: one that is allowed, one that the kiosk is denied. */
async function samplesOf(routes: readonly DescribedRoute[], settings: Settings): Promise<Samples> {
  const known = routes.filter(({ path }) => !/[{*(]/.test(path));
  // The examples of the documentation, where the app has them.
  known.sort((a, b) => Number(b.path === '/v1/orders') - Number(a.path === '/v1/orders'));
  const [till, kiosk] = await Promise.all([DEMO_TILL, DEMO_KIOSK].map((id) => keptCredential(settings, id)));
  const may = (client: typeof till, { requires }: DescribedRoute): boolean =>
    requires.some((scopes) => scopes.every((scope) => client?.scope.split(' ').includes(scope)));
  const allowed = known.find((route) => route.method === 'GET' && may(till, route));
  const needed = allowed?.requires.find((scopes) => may(till, { ...allowed, requires: [scopes] })) ?? [];
  return {
    allowed: allowed?.path,
    // A blank of a form is a plus.
    scope: needed.join('+') || (till?.scope.split(' ')[0] ?? ''),
    denied: known.find((route) => kiosk && route.method === 'POST' && route.requires.length > 0 && !may(kiosk, route))
      ?.path,
  };
}

/** Calls the API as `tillgate call` does. */
function callerOf(io: CommandContext['io'], settings: Settings): ApiMeans['call'] {
  return async function callApi({ client_id, method, path, json }) {
    const token = client_id === undefined ? undefined : (await obtainToken(io, settings, client_id, {})).access_token;
    return send(io, settings, withoutSlash(settings.baseUrl) + path, { method, token, json });
  };
}

async function isReadyWithin(ready: Promise<void>, patienceMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, patienceMs, false)));
  try {
    return await Promise.race([ready.then(() => true), patience]);
  } finally {
    clearTimeout(timer);
  }
}

/** `tillgate dev --token-server`: the embedded token server alone, for an API that runs elsewhere. */
async function devTokenServer(context: CommandContext, options: CommandOptions): Promise<void> {
  const { io } = context;
  const env = await withFreePorts(io.env);
  const settings = tokenServerSettings(readSettings(env));
  const scopes = clientScopes(options);
  const tokens = await startTokenServer(settings, openLog(io, options, settings), scopes);
  let forget: (() => Promise<void>) | undefined;
  try {
    forget = await keepLocation(env, settings);
    const report = {
      ready_ms: Math.round(process.uptime() * 1000),
      auth_url: embeddedAddress(settings).url,
      audience: settings.audience,
      data_dir: settings.dataDir,
      scopes,
      clients: await registerDemoClients(tokens.auth, settings, scopes),
    };
    print(context, report, tokenServerBanner(report, io.programName, locate(settings)));
    await io.untilStopped();
  } finally {
    await Promise.all([tokens.close(), forget?.()]);
  }
}

/**
 * The variables may be those of the API, which name this token server.
 *
 * @throws ConfigurationError when they name another one
 */
function tokenServerSettings(settings: Settings): Settings {
  const { issuer } = settings;
  const { url } = embeddedAddress(settings);
  if (issuer !== undefined && issuer !== url) {
    throw new ConfigurationError([
      `TILLGATE_AUTH_URL: got "${issuer}", but --token-server starts one at ${url}; leave it out, or change TILLGATE_AUTH_PORT`,
    ]);
  }
  return embeddedSettings(settings);
}

/** The settings without the variables that name the embedded token server itself. */
function embeddedSettings(settings: Settings): Settings {
  const { generationSource: source } = settings;
  const isOwn = source === `${embeddedAddress(settings).url}/generations`;
  return { ...settings, issuer: undefined, authUrl: undefined, generationSource: isOwn ? undefined : source };
}

/** `tillgate serve`: the API alone, until it is asked to stop. */
export async function serve(context: CommandContext, options: CommandOptions): Promise<void> {
  const { io } = context;
  const settings = externalSettings(await withFreePorts(io.env));
  const logger = openLog(io, options, settings);
  const generationSource = authorizedGenerations(settings, { fetch: io.fetch });
  try {
    const gate = {
      ...authenticateOptions(settings),
      fetch: io.fetch,
      ...(generationSource && { generationSource }),
    };
    const api = await startHosted(options.app, {
      settings,
      logger,
      gate,
    });
    try {
      print(
        context,
        { base_url: settings.baseUrl, listening: api.url, issuer: settings.issuer, admin: api.adminUrl },
        `Tillgate listens on ${api.url}, issuer ${settings.issuer}${api.adminUrl ? `, admin ${api.adminUrl}` : ''}`,
      );
      await io.untilStopped();
    } finally {
      await api.close();
    }
  } finally {
    await generationSource?.close?.();
  }
}

/**
 * Settings of an API that needs an authorization server elsewhere.
 *
 * @throws ConfigurationError with every problem, a missing authorization server among them
 */
function externalSettings(env: Environment): Settings {
  if (env['TILLGATE_AUTH_URL'] !== undefined || env['TILLGATE_ISSUER'] !== undefined) return readSettings(env);
  throw new ConfigurationError([...problemsOf(env), MISSING_ISSUER]);
}

function problemsOf(env: Environment): readonly string[] {
  try {
    readSettings(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}

/**
 * Replaces port 0 by a port that is free now. Listening on 0 is too late: URLs are part of tokens and metadata before
 * anything listens.
 */
async function withFreePorts(env: Environment): Promise<Environment> {
  const chosen: Record<string, string> = {};
  for (const name of ['TILLGATE_PORT', 'TILLGATE_AUTH_PORT']) {
    if (env[name] === '0') chosen[name] = String(await freePort());
  }
  return { ...env, ...chosen };
}

function isFree(port: number): Promise<boolean> {
  return freePort(port).then(
    () => true,
    () => false,
  );
}

/** Rejects where the port is taken. */
function freePort(wanted = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(wanted, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/**
 * The scopes that clients of the embedded token server may have: those of `--scopes` or `--openapi`, else those of the
 * scaffold. `undefined`: any, for an app whose scopes are not known.
 *
 * @throws CliError when the options name no scopes
 */
function clientScopes({ app, tokenServer, scopes, openapi }: CommandOptions): readonly string[] | undefined {
  if (scopes !== undefined && openapi !== undefined) {
    throw new CliError('give --scopes or --openapi, not both', EXIT.usage);
  }
  if (scopes !== undefined) return readScopes(scopes);
  if (openapi !== undefined) return scopesOfDocument(openapi);
  return app === undefined && !tokenServer ? SCOPES : undefined;
}

function readScopes(text: string): readonly string[] {
  const scopes = text.split(/\s+/).filter((scope) => scope !== '');
  const wrong = scopes.find((scope) => !isScopeToken(scope));
  if (scopes.length > 0 && wrong === undefined) return [...new Set(scopes)];
  const got = JSON.stringify(wrong ?? text);
  throw new CliError(`expected --scopes "orders:read orders:write", got ${got}`, EXIT.usage);
}

function scopesOfDocument(file: string): readonly string[] {
  const scopes = scopesOf(loadDocument(file));
  if (scopes.length > 0) return scopes;
  throw new CliError(`${file} names no scopes: declare them in its security schemes, or give --scopes`, EXIT.usage);
}

const FAMILIES = ['orders', 'items', 'menus', 'payments'];
/** The demo client that examples use. */
const DEMO_TILL = 'pos-terminal';
const DEMO_KIOSK = 'kiosk';

/**
 * Registers two clients at the first start and returns them with their secrets; later starts return none. A till with
 * all scopes and a kiosk that only reads are enough to see a 200, a 403 and a discarded token.
 */
async function registerDemoClients(
  tokens: AuthServer,
  settings: Settings,
  scopes: readonly string[] | undefined,
): Promise<readonly ClientWithSecret[]> {
  if (await hasCredentials(settings)) return [];
  const isOwn = scopes !== undefined && scopes !== SCOPES;
  const till = isOwn ? scopes : FAMILIES.flatMap((family) => [`${family}:read`, `${family}:write`]);
  const kiosk = till.filter((scope) => /\bread$/.test(scope));
  const demos = [{ client_id: DEMO_TILL, description: 'Demo till', scope: till.join(' ') }];
  if (kiosk.length > 0 && kiosk.length < till.length) {
    demos.push({ client_id: DEMO_KIOSK, description: 'Demo kiosk', scope: kiosk.join(' ') });
  }
  const known = new Set(tokens.list().map(({ client_id }) => client_id));
  const registered: ClientWithSecret[] = [];
  // A client that is registered already keeps its secret.
  for (const demo of demos.filter(({ client_id }) => !known.has(client_id))) {
    const client = await tokens.register(demo);
    await keepCredential(settings, client.client_id, client);
    registered.push(client);
  }
  return registered;
}
