import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import request from 'supertest';
import type { Test } from 'supertest';
import { cliScene } from '../harness';
import { reachable, SCAFFOLD } from '../while-dev-runs';

/** A client of the token server, with its secret. */
export interface DevClient {
  readonly client_id: string;
  readonly client_secret: string;
}

/** `tillgate dev` in this process, with the scaffold, or another command, in one of its own, on free ports. */
export interface DevScene {
  readonly base: string;
  readonly auth: string;
  /** The demo clients. */
  readonly till: DevClient;
  readonly kiosk: DevClient;
  /** Calls the token server, or the console on it. */
  call(method: 'get' | 'post' | 'patch' | 'delete', path: string, body?: object): Test;
  register(id: string, scope: string, description?: string): Promise<DevClient>;
  token(client: DevClient, scope: string): Promise<string>;
  /** Calls the API. */
  api(method: 'get' | 'post', path: string, token?: string): Test;
  /** Resolves when the API refuses a token: it is another process, and learns of a change a moment after the response to it. */
  discarded(token: string): Promise<void>;
  /** Resolves when the console has the last request that `api()` sent. */
  observed(): Promise<void>;
  /** The last request that was denied, after the last one that `api()` sent. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the JSON of a response, of which each test reads its part
  lastDenied(): Promise<any>;
  /** The event stream of the console; `text()` is what has arrived. */
  events(): Promise<{ readonly response: IncomingMessage; readonly text: () => string }>;
  stop(): Promise<void>;
}

export async function startDev(env: Record<string, string> = {}, command = SCAFFOLD): Promise<DevScene> {
  let stop: () => void = () => {};
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  let isReady: () => void = () => {};
  const ready = new Promise<void>((resolve) => (isReady = resolve));
  const ports = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'silent' };
  const untilStopped = (): Promise<void> => {
    isReady();
    return stopped;
  };
  const scene = cliScene({ env: { ...ports, ...env }, fetch, untilStopped, cwd: process.cwd() });
  const outcome = scene.run('dev', '--json', ...command);
  const early = await Promise.race([ready, outcome]);
  if (early) throw new Error(`dev ended: ${early.stderr}`);
  const report = JSON.parse(scene.output()) as { base_url: string; auth_url: string; clients: [DevClient, DevClient] };
  const { base_url: base, auth_url: auth, clients } = report;
  if (command === SCAFFOLD) await reachable(`${base}/livez`, outcome);

  let sent = 0;
  /** The process of the API reports a request after its response. */
  async function observed(): Promise<void> {
    if (sent === 0) return;
    const isThere = async (): Promise<boolean> => {
      const { body } = await request(auth).get('/console/api/requests?server=api');
      return (body.requests as { request_id: string }[]).some(({ request_id }) => request_id === `request-${sent}`);
    };
    while (!(await isThere())) await pause(5);
  }

  function api(method: 'get' | 'post', path: string, token?: string): Test {
    const call = request(base)[method](path).set('X-Request-Id', `request-${++sent}`);
    return token === undefined ? call : call.auth(token, { type: 'bearer' });
  }

  return {
    base,
    auth,
    async discarded(token) {
      while ((await api('get', '/v1/orders', token)).status !== 401) await pause(5);
    },
    observed,
    async lastDenied() {
      await observed();
      return (await request(auth).get('/console/api/requests/last-denied').expect(200)).body;
    },
    till: clients[0],
    kiosk: clients[1],
    call: (method, path, body) => request(auth)[method](path).send(body),
    async register(client_id, scope, description = '') {
      const { body } = await request(auth).post('/clients').send({ client_id, scope, description }).expect(201);
      return body as DevClient;
    },
    async token({ client_id, client_secret }, scope) {
      const form = { grant_type: 'client_credentials', client_id, client_secret, scope };
      const { body } = await request(auth).post('/connect/token').type('form').send(form).expect(200);
      return String(body.access_token);
    },
    api,
    async events() {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        send(`${auth}/console/api/events`, resolve).once('error', reject).end();
      });
      let arrived = '';
      response.setEncoding('utf8').on('data', (text: string) => (arrived += text));
      return { response, text: () => arrived };
    },
    async stop() {
      stop();
      await outcome;
    },
  };
}
