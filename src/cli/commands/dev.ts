import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import { ConfigurationError } from 'tillgate';
import { readSettings, type Environment, type Settings } from 'tillgate/env';
import { loadDocument, scopesOf } from '@tillgate/testing/internal';
import { isScopeToken } from '../auth-server/options';
import { banner } from '../banner';
import { CliError, EXIT, usageError, type CliIo, type CommandContext, type CommandOptions } from '../command';
import { print, shellWord, write } from '../output';
import { protectedRoutes, registerDemoClients, samplesOf } from '../demo-clients';
import { send } from '../http';
import { openLog } from '../log';
import { apiSettings, embeddedAddress, firstAudience, isEmbedded } from '../settings';
import { startTokenServer, type ApiFacts } from '../token-server';
import { obtainToken } from './token';

const OBSERVER = join(__dirname, '../static/observer.cjs');

/**
 * `tillgate dev [-- command]`: the embedded token server with the console, unless an authorization server is configured,
 * and the command as a child process that is configured for it. Ends with the exit code of the command.
 */
export async function dev(context: CommandContext, options: CommandOptions, ...command: string[]): Promise<number> {
  const { io } = context;
  const env = await withFreePorts(io.env);
  const given = readSettings(env);
  if (options.tokenServer) return serveTokens(context, options, tokenServerSettings(given), undefined);
  if (command.length === 0) {
    throw usageError('name the command that starts your app: dev -- node app.js; or give --token-server');
  }
  if (!isEmbedded(given)) return runUntilStopped(io, command, env);
  return serveTokens(context, options, given, (watched, settings) =>
    // Its tokens are stamped: one without the claim is refused, unless the variable says otherwise.
    runUntilStopped(watched, command, variablesFor(settings, { TILLGATE_GENERATION_CLAIM: 'generation', ...env })),
  );
}

/** Starts the token server, then `work`, and stops it after that; both end where the token server stops by itself. */
async function serveTokens(
  context: CommandContext,
  options: CommandOptions,
  settings: Settings,
  work: ((io: CliIo, settings: Settings) => Promise<number>) | undefined,
): Promise<number> {
  const { io } = context;
  const document = documentOf(options, io.cwd);
  const scopes = clientScopes(options, document);
  const routes = document ? protectedRoutes(document) : [];
  // With it a command in any folder finds the secrets of the clients.
  const location = `TILLGATE_DATA_DIR=${shellWord(resolve(settings.dataDir))}`;
  // The page of the scaffold, which has a document.
  const docsUrl = document && `${settings.baseUrl.replace(/\/$/, '')}/docs/`;
  const command = `${location} ${io.programName}`;
  const api: ApiFacts = { scopes, routes, docsUrl, command, call: callerOf(io, settings) };
  const tokens = await startTokenServer(settings, openLog(io, options, settings), api);
  try {
    const report = {
      // Since the start of the process: loading the program counts.
      ready_ms: Math.round(process.uptime() * 1000),
      ...(work && { base_url: settings.baseUrl }),
      auth_url: embeddedAddress(settings).url,
      audience: firstAudience(settings),
      data_dir: settings.dataDir,
      console_url: tokens.consoleUrl,
      scopes,
      clients: await registerDemoClients(tokens.auth, settings, scopes),
    };
    print(context, report, banner(report, io.programName, await samplesOf(routes, settings), location));
    let reason: Error | undefined;
    const stopped = tokens.auth.stopped.then((error) => void (reason = error));
    const watched = { ...io, untilStopped: () => Promise.race([io.untilStopped(), stopped]) };
    const code = work ? await work(watched, settings) : await watched.untilStopped().then(() => EXIT.ok);
    if (reason) throw new CliError(reason.message);
    return code;
  } finally {
    await tokens.close();
  }
}

/** The variables with which an app trusts the token server, and an observer for the console. */
function variablesFor(settings: Settings, env: Environment): Environment {
  const { url } = embeddedAddress(settings);
  const { port, baseUrl, adminToken, generationSource = `${url}/generations` } = settings;
  return {
    ...env,
    TILLGATE_PORT: String(port),
    TILLGATE_BASE_URL: baseUrl,
    TILLGATE_AUTH_URL: url,
    TILLGATE_AUDIENCE: firstAudience(settings),
    TILLGATE_GENERATIONS: generationSource,
    // With an admin token there is no console.
    ...(adminToken === undefined && {
      CONSOLE_OF_TILLGATE_DEV: url,
      NODE_OPTIONS: [process.env['NODE_OPTIONS'], `--require ${JSON.stringify(OBSERVER)}`].filter(Boolean).join(' '),
    }),
  };
}

/** After a signal, what is still running is killed: longer than open requests get at the scaffold. */
const STOP_WITHIN_MS = 12_000;

/** Runs a command until it ends or this process is asked to stop; returns its exit code. */
async function runUntilStopped(io: CliIo, [file = '', ...args]: readonly string[], env: Environment): Promise<number> {
  // Node's own spawn() finds no npx.cmd on Windows.
  const { default: spawn } = await import('cross-spawn');
  const child = spawn(file, args, { stdio: 'inherit', env: { ...process.env, ...env }, cwd: io.cwd });
  const ended = exitCodeOf(child, file);
  const signal = await Promise.race([ended, io.untilStopped().then((name) => name ?? 'SIGTERM')]);
  if (typeof signal === 'number') {
    if (signal !== 0) write(io.stderr, `tillgate: ${file} ended with exit code ${signal}, and dev with it`);
    return signal;
  }
  // Ctrl+C goes to every process of the terminal: a second signal would end the command at once.
  if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
  return ended.finally(() => clearTimeout(late));
}

async function exitCodeOf(child: ChildProcess, file: string): Promise<number> {
  const exit = once(child, 'exit').catch(({ message }: Error) => {
    throw usageError(`cannot start ${file}: ${message}`);
  });
  const [code, signal] = (await exit) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}

/** Calls the API as `tillgate call` does. */
function callerOf(io: CliIo, given: Settings): ApiFacts['call'] {
  const settings = apiSettings(given);
  return async function callApi({ client_id, method, path, json }) {
    const token = client_id === undefined ? undefined : (await obtainToken(io, settings, client_id, {})).access_token;
    return send(io, settings, settings.baseUrl.replace(/\/$/, '') + path, { method, token, json });
  };
}

/**
 * The variables may be those of the API, which name this token server.
 *
 * @throws ConfigurationError when they name another one
 */
function tokenServerSettings(settings: Settings): Settings {
  const { issuer, generationSource: source } = settings;
  const { url } = embeddedAddress(settings);
  if (issuer !== undefined && issuer !== url) {
    throw new ConfigurationError([
      `TILLGATE_AUTH_URL: got "${issuer}", but --token-server starts one at ${url}; leave it out, or change TILLGATE_AUTH_PORT`,
    ]);
  }
  const isOwn = source === `${url}/generations`;
  return { ...settings, issuer: undefined, authUrl: undefined, generationSource: isOwn ? undefined : source };
}

/**
 * Replaces port 0 by a port that is free now. Listening on 0 is too late: URLs are part of tokens and metadata before
 * anything listens.
 */
async function withFreePorts(env: Environment): Promise<Environment> {
  const names = ['TILLGATE_PORT', 'TILLGATE_AUTH_PORT'].filter((name) => env[name] === '0');
  const probes = names.map((name) => [name, createServer().listen(0, '127.0.0.1')] as const);
  await Promise.all(probes.map(([, probe]) => once(probe, 'listening')));
  const chosen = probes.map(([name, probe]) => [name, String((probe.address() as AddressInfo).port)] as const);
  // Only now: a port that is free again could be chosen a second time.
  await Promise.all(probes.map(([, probe]) => once(probe.close(), 'close')));
  return { ...env, ...Object.fromEntries(chosen) };
}

/** The OpenAPI document of the API: that of `--openapi`, else openapi.yaml in the current directory, if it is there. */
function documentOf({ openapi, scopes }: CommandOptions, cwd: string): ReturnType<typeof loadDocument> | undefined {
  if (scopes !== undefined && openapi !== undefined) throw usageError('give --scopes or --openapi, not both');
  const file = resolve(cwd, openapi ?? 'openapi.yaml');
  return openapi !== undefined || existsSync(file) ? loadDocument(file) : undefined;
}

/**
 * The scopes that clients of the embedded token server may have: those of `--scopes`, else of the document. `undefined`:
 * any, for an API whose scopes are not known.
 *
 * @throws CliError when the options name no scopes
 */
function clientScopes(
  { scopes: text, openapi }: CommandOptions,
  document: ReturnType<typeof loadDocument> | undefined,
): readonly string[] | undefined {
  if (text !== undefined) {
    const given = text.split(/\s+/).filter((scope) => scope !== '');
    const wrong = given.find((scope) => !isScopeToken(scope));
    if (given.length > 0 && wrong === undefined) return [...new Set(given)];
    throw usageError(`expected --scopes "orders:read orders:write", got ${JSON.stringify(wrong ?? text)}`);
  }
  const scopes = document ? scopesOf(document) : [];
  if (scopes.length > 0) return scopes;
  if (openapi === undefined) return undefined;
  throw usageError(`${openapi} names no scopes: declare them in its security schemes, or give --scopes`);
}
