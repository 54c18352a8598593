import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import request from 'supertest';
import type { Test } from 'supertest';
import { createAuthServer } from '../../../src/cli/auth-server';
import type { AuthServer, AuthServerOptions, ClientWithSecret } from '../../../src/cli/auth-server';
import { fakeTime } from '../../support/fake-time';
import type { FakeTime } from '../../support/fake-time';
import { listen } from '../../support/listen';
import { recordingLogger } from '../../support/log';
import type { RecordingLogger } from '../../support/log';
import { putKeyInto } from '../data-dir';

export const ISSUER = 'http://login.test';
export const AUDIENCE = 'http://api.test';
export const SCOPES = ['orders:read', 'orders:write', 'items:read'];
/** A good token request without credentials. */
export const GRANT = { grant_type: 'client_credentials', scope: 'orders:read' };

/** A token server that listens on loopback, with the calls that tests make of it. */
export interface TestServer {
  readonly auth: AuthServer;
  readonly time: FakeTime;
  readonly log: RecordingLogger;
  readonly dataDir: string;
  readonly url: string;
  /** Sends a form, or the text of one. */
  form(path: string, form: object | string, headers?: Record<string, string>): Test;
  /** Asks for a token with credentials in the body; members of `form` are laid over a good request. */
  token(client: ClientWithSecret, form?: Record<string, string>): Test;
  /** The access token of a request that must succeed. */
  accessToken(client: ClientWithSecret, scope?: string): Promise<string>;
  introspect(client: ClientWithSecret, token: string): Promise<Record<string, unknown>>;
  get(path: string): Test;
  post(path: string, body?: object): Test;
  patch(path: string, body: object): Test;
  delete(path: string): Test;
  /** Starts again on the same directory. */
  restart(options?: Partial<AuthServerOptions>): Promise<TestServer>;
}

const open = new Set<() => Promise<void>>();
const directories = new Set<string>();

/** A fresh directory; removed by `closeAll()`. */
export function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'tillgate-auth-'));
  directories.add(directory);
  return directory;
}

/** Starts a token server without a rate limit, and with time that stands still. */
export async function startServer(options: Partial<AuthServerOptions> = {}, time = fakeTime()): Promise<TestServer> {
  const { dataDir = newDirectory() } = options;
  if (options.dataDir === undefined) putKeyInto(dataDir);
  const log = recordingLogger();
  const auth = await createAuthServer({
    issuer: ISSUER,
    audience: AUDIENCE,
    dataDir,
    scopes: SCOPES,
    rateLimit: false,
    logger: log,
    clock: time.clock,
    schedule: time.schedule,
    ...options,
  });
  const server = await listen(auth.handler);
  const { url } = server;
  async function close(): Promise<void> {
    open.delete(close);
    await auth.close();
    await server.close();
  }
  open.add(close);

  const form: TestServer['form'] = (path, content, headers = {}) =>
    request(url).post(path).type('form').set(headers).send(content);
  const token: TestServer['token'] = ({ client_id, client_secret }, changes = {}) =>
    form('/connect/token', { ...GRANT, client_id, client_secret, ...changes });
  return {
    auth,
    time,
    log,
    dataDir,
    url,
    form,
    token,
    async accessToken(client, scope = 'orders:read') {
      const response = await token(client, { scope });
      expect(response.status).toBe(200);
      return response.body.access_token;
    },
    async introspect({ client_id, client_secret }, value) {
      const response = await form('/connect/introspect', { client_id, client_secret, token: value });
      expect(response.status).toBe(200);
      return response.body;
    },
    get: (path) => request(url).get(path),
    post: (path, body) => request(url).post(path).send(body),
    patch: (path, body) => request(url).patch(path).send(body),
    delete: (path) => request(url).delete(path),
    async restart(changes = {}) {
      await close();
      return startServer({ ...options, ...changes, dataDir }, time);
    },
  };
}

/** The server as a caller at another address reaches it. */
export function from(server: TestServer, remoteAddress: string | undefined): Server {
  return createServer((req, res) => {
    Object.defineProperty(req.socket, 'remoteAddress', { value: remoteAddress });
    server.auth.handler(req, res);
  });
}

/** Registers `pos-17` with read and write on orders. */
export function registerClient(server: TestServer, client: object = {}): Promise<ClientWithSecret> {
  return server.auth.register({
    client_id: 'pos-17',
    description: 'Till 17',
    scope: 'orders:read orders:write',
    ...client,
  });
}

/** Every kind of change, to be made of a server that has `pos-17`. */
export function changesOf(server: TestServer): (() => Test)[] {
  return [
    () => server.post('/clients', { client_id: 'new', scope: 'orders:read' }),
    () => server.patch('/clients/pos-17', { description: 'new' }),
    () => server.post('/clients/pos-17/secrets'),
    () => server.post('/clients/pos-17/revoke'),
    () => server.delete('/clients/pos-17'),
  ];
}

/** Ends every server that the tests of a file have started, and removes their directories. */
export async function closeAll(): Promise<void> {
  jest.restoreAllMocks();
  await Promise.all([...open].map((close) => close()));
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  directories.clear();
}

/** Header and payload of a token, not verified. */
export function decode(token: string): { header: Record<string, unknown>; claims: Record<string, unknown> } {
  const [header = '', claims = ''] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  return { header: JSON.parse(header), claims: JSON.parse(claims) };
}

/** HTTP Basic as RFC 7617 has it; encode id and secret before where RFC 6749 section 2.3.1 wants it. */
export function basic(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
}
