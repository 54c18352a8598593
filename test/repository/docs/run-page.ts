import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import * as crypto from 'node:crypto';
import { createServer as createTlsServer } from 'node:https';
import type { ServerOptions } from 'node:https';
import * as path from 'node:path';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import cors from 'cors';
import { transformSync } from 'esbuild';
import express from 'express';
import type { Express } from 'express';
import { rateLimit } from 'express-rate-limit';
import type { Options as RateLimitOptions } from 'express-rate-limit';
import { load as parseYaml } from 'js-yaml';
import jsonwebtoken from 'jsonwebtoken';
import * as passport from 'passport';
import { RedisStore } from 'rate-limit-redis';
import request from 'supertest';
import * as ws from 'ws';
import * as tillgate from '../../../src/gate';
import type { AuthenticateOptions, Gate } from '../../../src/gate';
import * as generations from '../../../src/gate/generation';
import type { HttpGenerationsOptions } from '../../../src/gate/generation';
import * as possession from '../../../src/gate/possession';
import * as env from '../../../src/gate/env';
import * as stores from '../../../src/stores';
import * as testing from '../../../src/testing';
import type { ContractCases, ContractCasesOptions, TestIssuer } from '../../../src/testing';
import certificates from '../../support/certificates.json';
import { newKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';
import { blocksOf, filesInMemory, programOf, ROOT } from './blocks';

/** What the examples of a page have made. */
export interface Result {
  readonly apps: readonly Express[];
  readonly issuers: readonly TestIssuer[];
  readonly servers: readonly Server[];
  /** Gates and apps. */
  readonly opened: readonly { close(): unknown }[];
  /** The options of its gates, in their order. */
  readonly options: readonly AuthenticateOptions[];
  readonly tests: readonly { readonly name: string; readonly run: () => unknown }[];
  /** What `node:fs` reads: a certificate and its key. A test replaces them. */
  readonly files: Map<string, string>;
  /** What its `setInterval()` would call. */
  readonly intervals: readonly (() => void)[];
  /** The arguments of each `console.warn()`. */
  readonly warnings: readonly unknown[][];
}

type Body = (
  require: (name: string) => unknown,
  it: (name: string, run: () => unknown) => void,
  globals: object,
) => Promise<void>;

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const toClose: { close(): unknown }[] = [];

/** Closes what the pages have opened. */
export function closePages(): Promise<unknown> {
  return Promise.all(toClose.map((one) => one.close()));
}

/**
 * Runs the examples of a page. No port is taken, and `closePages()` closes what they open.
 *
 * @param fetch - what gates and examples call. Default: nothing but this machine responds
 */
export async function runPage(page: string, fetch: Fetch = fetchFromThisMachine): Promise<Result> {
  const { imports, body } = programOf(blocksOf(page).filter(({ mode }) => mode === 'run'));
  const requires = imports.flatMap(requireOf).join('\n');
  const { code } = transformSync(`(async () => {\n${body}})()`, { loader: 'ts', target: 'node20' });
  const { certificate, privateKey } = certificates.server;
  const result: Made = {
    ...{ apps: [], issuers: [], servers: [], opened: [], options: [], tests: [], intervals: [], warnings: [] },
    files: new Map(Object.entries({ 'tls.crt': certificate, 'tls.key': privateKey })),
  };
  const it = (name: string, test: () => unknown): unknown => result.tests.push({ name, run: test });
  const modules: Readonly<Record<string, unknown>> = {
    ...modulesFor(result, documentOf(page), fetch),
    'node:test': { it, test: it },
  };
  const load = (name: string): unknown => {
    if (!Object.hasOwn(modules, name)) throw new Error(`${page} imports ${name}, which this test does not know`);
    return modules[name];
  };
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the examples of our own pages
  const run = new Function('require', 'it', 'globals', `{ ${GLOBALS}\n${requires}\nreturn ${code} }`) as Body;
  const setInterval = (task: () => void): object => ({ unref: () => result.intervals.push(task) });
  const warn = (...given: unknown[]): unknown => result.warnings.push(given);
  await run(load, it, { process: { once() {} }, fetch, setInterval, console: { ...console, warn } });
  // A gate that is closed follows no log: they are closed behind the tests of the page.
  toClose.push(...result.opened);
  return result;
}

/** The OpenAPI document that a page shows: its examples read it as openapi.yaml. */
function documentOf(page: string): object | undefined {
  const [, text] = /^```yaml\n(openapi: [^]*?)^```$/m.exec(readFileSync(join(ROOT, page), 'utf8')) ?? [];
  return text === undefined ? undefined : (parseYaml(text) as object);
}

function requireOf(statement: string): readonly string[] {
  const [, names = '', from = ''] = /^import (.*) from '(.*)';/.exec(statement) ?? [];
  if (names.startsWith('type ')) return [];
  return [`const ${names.startsWith('{') ? names : `{ default: ${names} }`} = require('${from}');`];
}

const GLOBALS = 'const { process, fetch, setInterval, console } = globals;';

type Made = {
  readonly [Member in keyof Result]: Result[Member] extends readonly (infer One)[] ? One[] : Result[Member];
};

function fetchFromThisMachine(url: string, init: RequestInit): Promise<Response> {
  return url.startsWith('http://127.0.0.1:') ? fetch(url, init) : Promise.reject(new Error('offline'));
}

function modulesFor(
  { apps, issuers, servers, opened, options: given, files }: Made,
  shown: object | undefined,
  fetch: Fetch,
): Readonly<Record<string, unknown>> {
  const isolated = { fetch, logger: recordingLogger() };
  function authenticate(options: AuthenticateOptions): Gate {
    const gate = tillgate.authenticate({ ...isolated, ...options });
    given.push(options);
    opened.push(gate);
    return gate;
  }
  function contractCases(options: ContractCasesOptions): ContractCases {
    return testing.contractCases({ ...options, openapi: shown ?? options.openapi });
  }
  function makeExpress(): Express {
    const made = express();
    // The handlers of the examples are called without a port of their own.
    made.listen = () => createServer(made);
    apps.push(made);
    return made;
  }
  const handler = (_req: unknown, res: { json(body: unknown): void }): void => res.json([]);
  function createTestIssuer(): TestIssuer {
    const issuer = testing.createTestIssuer();
    issuers.push(issuer);
    return issuer;
  }
  function httpGenerations(options: HttpGenerationsOptions): generations.GenerationSource {
    return generations.httpGenerations({ ...options, ...isolated });
  }
  function kept<Kind extends Server>(server: Kind): Kind {
    servers.push(server);
    return server;
  }
  /** Generating an RSA key takes up to half a second. */
  function generateKeyPairSync(type: 'ec' | 'rsa', options: never): object {
    if (type !== 'rsa') return crypto.generateKeyPairSync(type, options);
    const { privateKey } = newKey('RS256');
    return { privateKey, publicKey: crypto.createPublicKey(privateKey) };
  }
  const values = new Map<string, string>();
  /** A Redis that keeps values and scripts, and fails to run them. */
  function createClient(): object {
    const client = {
      on: () => client,
      connect: () => Promise.resolve(client),
      get: (key: string) => Promise.resolve(values.get(key) ?? null),
      set: (key: string, value: string) => Promise.resolve(values.set(key, value)),
      sendCommand: ([command]: readonly string[]) =>
        command === 'SCRIPT' ? Promise.resolve('digest') : Promise.reject(new Error('Redis is down')),
    };
    return client;
  }
  return {
    cors: { default: cors },
    'express-rate-limit': {
      rateLimit: (options: Partial<RateLimitOptions>) => rateLimit({ ...options, logger: { warn() {}, error() {} } }),
    },
    'node:crypto': { ...crypto, generateKeyPairSync },
    'node:http': { createServer: (handler: RequestListener) => kept(createServer(handler)) },
    'node:https': {
      createServer: (options: ServerOptions, handler: RequestListener) => kept(createTlsServer(options, handler)),
    },
    jsonwebtoken: { default: jsonwebtoken },
    passport: { default: passport },
    'node:path': path,
    'rate-limit-redis': { RedisStore },
    redis: { createClient },
    'node:fs/promises': filesInMemory(),
    'node:fs': {
      readFileSync(name: string) {
        const text = files.get(name);
        if (text === undefined) throw new Error(`ENOENT: ${name}`);
        return text;
      },
    },
    ws,
    express: { default: Object.assign(makeExpress, express), Router: express.Router },
    supertest: { default: request },
    tillgate: { ...tillgate, authenticate },
    'tillgate/env': env,
    'tillgate/generations': { ...generations, httpGenerations },
    'tillgate/possession': possession,
    '@tillgate/stores': stores,
    '@tillgate/testing': { ...testing, contractCases, createTestIssuer },
    './handlers.js': { listOrders: handler, listReports: handler, listStores: handler },
  };
}
