/* eslint-disable @typescript-eslint/no-require-imports -- the scaffold needs packages that an app to look at need not have */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type * as scaffold from '@tillgate/app';
import type { RequestObserver } from '@tillgate/app/internal';
import type { App, AppOptions, RunningApi } from '@tillgate/app';
import { layersOf } from '@tillgate/testing/internal';
import { readSettings } from 'tillgate/env';
import { attempt } from 'tillgate/internal';
import { ConfigurationError } from 'tillgate';
import type { AuthenticateOptions } from 'tillgate';
import type * as appLog from '@tillgate/app/internal';
import type * as testing from '@tillgate/testing';
import { CliError, EXIT } from './command';

/** What the server needs of an app: `createApp()` makes one; so does an Express app that is wrapped. */
type HostedApp = Pick<App, 'handler' | 'readiness' | 'drain' | 'close'> & {
  readonly gate: Pick<App['gate'], 'ready' | 'status'>;
};

/**
 * Listens with the scaffold, or with the app of a user's module.
 *
 * @param module - path of a module that exports what `createApp()` of @tillgate/app returns, an Express app, or, as
 *   default or `createApp`, a function of the options of `createApp()` that returns one of them
 * @param observe - gets the Express app and returns what listens in its place
 * @throws CliError when it exports nothing of the kind, or listens by itself
 */
export async function startHosted(
  module: string | undefined,
  options: AppOptions,
  observe = (handler: RequestListener): RequestListener => handler,
): Promise<RunningApi> {
  const observed = <Hosted extends HostedApp>(app: Hosted): App =>
    ({ ...app, handler: observe(app.handler) }) as unknown as App;
  const { createApp, startApi } = require('@tillgate/app') as typeof scaffold;
  const { logRequest, requestObserver, warningsOf } = require('@tillgate/app/internal') as typeof appLog;
  if (module === undefined) return startApi(options, (given) => observed(createApp(given)));
  shareSettings(options);
  const before = listeners();
  const exported = await loadModule(module);
  // A server with a host name listens some turns later.
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  if (listeners() > before) {
    throw wrong(module, 'it listens by itself; export the app without listen(), which this command does');
  }
  const make = factoryOf(exported);
  return startApi(options, async (given) => {
    const { logger, onRequest } = given;
    const observer = requestObserver((event) => {
      if (logger) logRequest(logger, event);
      onRequest?.(event);
    }, Date.now);
    const onDecision: AuthenticateOptions['onDecision'] = (decision, request) => {
      observer.decided(decision, request);
      return given.gate?.onDecision?.(decision, request);
    };
    const reports = { ...(logger && { logger: warningsOf(logger) }), onDecision };
    const made = make
      ? await locating(module, 'cannot be started', () =>
          make({ ...given, ...(given.gate && { gate: { ...given.gate, ...reports } }) }),
        )
      : candidates(exported).find((one) => isApp(one) || isHosted(one));
    if (isHosted(made)) return observed(made);
    if (!isApp(made)) throw wrong(module, make ? 'its function returns neither' : 'its exports are neither');
    return asHosted(observe(made as App['handler']), observer) as unknown as App;
  });
}

function wrong(module: string, what: string): CliError {
  return new CliError(
    `${module}: expected a module that exports what createApp() of @tillgate/app returns, an Express app, or a function ` +
      `of createApp's options that returns one of them (default export, or createApp): ${what}`,
    EXIT.usage,
  );
}

/** An app that calls `authenticate()` without options reads the variables: they name the embedded token server. */
function shareSettings({ settings }: AppOptions): void {
  const { authUrl, issuer, port, generationSource, adminToken } = settings;
  const variables = {
    TILLGATE_PORT: String(port),
    TILLGATE_AUTH_URL: authUrl ?? issuer,
    // Without the admin token the log cannot be read: such an app has to use the option `gate` (docs/scaffold.md).
    TILLGATE_GENERATIONS: adminToken === undefined ? generationSource : undefined,
  };
  for (const [name, value] of Object.entries(variables)) {
    if (value !== undefined && process.env[name] === undefined) process.env[name] = value;
  }
}

function listeners(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length;
}

function factoryOf(exported: unknown): ((options: Partial<AppOptions>) => unknown) | undefined {
  const holder = Object(exported) as Record<string, unknown>;
  const fallback = Object(holder['default']) as Record<string, unknown>;
  const possible = [exported, fallback, holder['createApp'], fallback['createApp']];
  return possible.find((one) => typeof one === 'function' && !isApp(one));
}

function isHosted(value: unknown): value is HostedApp {
  const { handler, gate, close } = Object(value) as Partial<HostedApp>;
  return isApp(handler) && gate !== undefined && typeof close === 'function';
}

/** An app of whose gate nothing is known counts as ready. It does not log its requests: the observer does. */
function asHosted(app: RequestListener, observer: RequestObserver): HostedApp {
  let draining = false;
  function handler(...[req, res]: Parameters<RequestObserver['handler']>): void {
    observer.handler(req, res, () => void app(req, res));
  }
  return {
    handler: handler as App['handler'],
    gate: { ready: () => Promise.resolve(), status: () => ({ ready: true, issuers: [] }) },
    readiness: () => ({ ready: !draining, draining, components: { keys: 'none', generations: 'off' } }),
    drain: () => void (draining = true),
    close: () => Promise.resolve(),
  };
}

/**
 * Loads the Express app that a module exports under whichever name, or that the function makes which it exports as
 * default or `createApp`: CommonJS or ESM.
 *
 * @param module - path of the module, from the current directory
 * @throws CliError when it cannot be loaded, or exports no app or several
 * @throws ConfigurationError when the app refuses its configuration
 */
export async function loadApp(module: string): Promise<object> {
  // An app that calls `authenticate()` without options is looked at, and never called.
  if (process.env['TILLGATE_ISSUER'] === undefined) process.env['TILLGATE_AUTH_URL'] ??= await silentIssuer();
  const exported = await loadModule(module);
  const apps = new Set(candidates(exported).filter(isApp));
  const [app, ...others] = apps;
  if (app !== undefined && others.length === 0) return app;
  const make = apps.size === 0 ? factoryOf(exported) : undefined;
  const made = make && (await locating(module, 'cannot be loaded', () => make(optionsToLookAt())));
  if (isApp(made)) return made;
  if (isHosted(made)) {
    await made.close();
    return made.handler;
  }
  const names = Object.keys(exported ?? {}).join(', ') || 'nothing';
  throw new CliError(
    `${module}: expected a module that exports one Express app, got ${apps.size} apps in its exports (${names}); ` +
      'export the app itself, without listening: module.exports = app, export const app = ..., or a function createApp',
    EXIT.usage,
  );
}

/** URL of an authorization server that never responds: the app asks it for keys, and a refusal would be logged. */
async function silentIssuer(): Promise<string> {
  const server = createServer((socket) => socket.unref()).listen(0, '127.0.0.1');
  await once(server.unref(), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Options for a function whose app is looked at and never called: no variable has to be set. */
function optionsToLookAt(): AppOptions {
  const { createTestIssuer } = require('@tillgate/testing') as typeof testing;
  const { createLog } = require('@tillgate/app') as typeof scaffold;
  const { issuer, options } = createTestIssuer();
  const settings = readSettings({ TILLGATE_AUTH_URL: issuer });
  return { settings, gate: options, logger: createLog({ level: 'silent' }) };
}

function loadModule(module: string): Promise<unknown> {
  return locating(module, 'cannot be loaded', () => requireOrImport(resolve(module)));
}

/** Does something with a user's code; says in which line of it an error came up. */
async function locating<Value>(module: string, what: string, work: () => Value): Promise<Awaited<Value>> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CliError) throw error;
    // It may come from another copy of this package: compare the name, not the class.
    const { name, message, problems } = error as Error & { readonly problems?: readonly string[] };
    if (name === 'ConfigurationError' && problems) throw new ConfigurationError(problems);
    throw new CliError(`${module}: ${what}: ${String(message)}${frameOf(error, module)}`, EXIT.usage);
  }
}

/** This package: what its own functions throw is shown at the line that called them. */
const PACKAGE = join(__dirname, '..');

/** File, line and the code there, as Node shows them for an error that nothing catches. */
function frameOf(error: unknown, module: string): string {
  const { name, stack = '' } = error as Error;
  const located = locatedSyntax(stack);
  if (located !== undefined) return located;
  for (const [, place = '', line = '', column = ''] of stack.matchAll(/^ +at (?:.*\()?(.+?):(\d+):(\d+)\)?$/gm)) {
    const file = place.startsWith('file:') ? fileURLToPath(place) : place;
    if (/^node:|[\\/]node_modules[\\/]/.test(file) || file.startsWith(PACKAGE)) continue;
    const code = attempt(() => readFileSync(file, 'utf8').split('\n')[Number(line) - 1]);
    return `\n\n${file}:${line}${code === undefined ? '' : `\n${code}\n${' '.repeat(Number(column) - 1)}^`}`;
  }
  if (name !== 'SyntaxError') return '';
  // Node keeps the place of one in ESM for itself until nothing catches it; a module that cannot be parsed does not run.
  const script = `await import(${JSON.stringify(pathToFileURL(resolve(module)).href)})`;
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  return locatedSyntax(stderr) ?? '';
}

/** What Node prints before the message of a syntax error. */
function locatedSyntax(text: string): string | undefined {
  const located = /^(\S.*:\d+\n(?:.*\n)+?)\n?SyntaxError/.exec(text)?.[1];
  return located && `\n\n${located.trimEnd()}`;
}

async function requireOrImport(path: string): Promise<unknown> {
  if (/\.[cm]?ts$/.test(path)) registerTypeScript(createRequire(path));
  try {
    return createRequire(path)(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_REQUIRE_ASYNC_MODULE' && code !== 'ERR_REQUIRE_ESM') throw error;
    return import(pathToFileURL(path).href);
  }
}

/** With the tsx of the project: Node 20 runs no TypeScript, and later ones find no `./orders.ts` by the name `./orders.js`. */
function registerTypeScript(requireThere: NodeJS.Require): void {
  try {
    (requireThere('tsx/cjs/api') as { register(): unknown }).register();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    if ('typescript' in process.features && process.features.typescript) return;
    throw new Error('TypeScript needs the package tsx: npm install --save-dev tsx', { cause: error });
  }
}

/** What a module may export an app as: the module itself, its default, a name of either. */
function candidates(exported: unknown): readonly unknown[] {
  const fallback = isApp(exported) ? undefined : (Object(exported) as { default?: unknown }).default;
  return [exported, fallback, ...namesOf(exported), ...namesOf(fallback)];
}

function namesOf(holder: unknown): readonly unknown[] {
  return isApp(holder) ? [] : Object.values(Object(holder) as object);
}

/** Whether a value is an Express app. */
function isApp(value: unknown): value is object {
  return typeof value === 'function' && layersOf(value) !== undefined;
}
