import { setTimeout } from 'node:timers/promises';
import express from 'express';
import { authenticate, requireScope } from '../../../src/gate';
import type { AuthenticateOptions } from '../../../src/gate';
import { recordingLogger } from '../../support/log';
import { listen } from '../../support/listen';
import { optionsOfSection } from './page';

export const AUDIENCE = 'https://api.example.com';
export const CLIENT = 'till-9';
export const SCOPE = 'orders:read';

/** What an operator can change at a client. */
export type Change = 'description' | 'secret' | 'deletion';

/** An authorization server that listens, with the client `till-9`. */
export interface RunningServer {
  readonly issuer: string;
  /** What the example of the page names for a server of somebody else: URLs and the generation source. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Gets a token with scope `orders:read` by client credentials. */
  token(): Promise<string>;
  /** A token as the server makes it without the steps of its section, where it has such steps. */
  asMade?(): Promise<{ readonly issuer: string; readonly token: string }>;
  /** In this order; `token()` uses the new secret. A server for tests may have no clients that could change. */
  readonly changes: Readonly<Partial<Record<Change, () => Promise<unknown>>>>;
  stop(): Promise<unknown>;
}

export interface AuthorizationServer {
  readonly name: string;
  /** Heading of its section in docs/issuers.md. Default: its name. */
  readonly section?: string;
  readonly version: string;
  /** How the gate learns of a change. */
  readonly learns: string;
  /** @throws Error that says why the server cannot be started here */
  start(this: void): Promise<RunningServer>;
}

/** One row of the table: what was seen, and when. */
export interface Seen extends Readonly<Record<Change, string>> {
  readonly server: string;
  readonly version: string;
  readonly date: string;
  /** What README's first example responds with, and what the options of the server's section do. */
  readonly first: string;
  readonly options: string;
  readonly learns: string;
}

/** How long an earlier token is tried after a change. */
const PATIENCE_MS = 5_000;

/** Starts a server, sends its tokens to both gates, and changes its client. */
export async function runServer({ name, section = name, version, learns, start }: AuthorizationServer): Promise<Seen> {
  const server = await start();
  const own = await openApi({
    ...optionsOfSection(section),
    issuer: server.issuer,
    ...server.options,
  } as AuthenticateOptions);
  try {
    const first = await askFirstExample(server);
    const options = await own.ask(await server.token());
    const { description, secret, deletion } = server.changes;
    return {
      ...{ server: name, version, date: new Date().toISOString().slice(0, 10), first, options },
      description: description ? await timeChange(own, server, description) : 'no clients',
      secret: secret ? await timeChange(own, server, secret) : 'no clients',
      deletion: deletion ? await timeChange(own, server, deletion, false) : 'no clients',
      learns,
    };
  } finally {
    await own.close();
    await server.stop();
  }
}

/** What README's first example responds with. */
async function askFirstExample(server: RunningServer): Promise<string> {
  const { issuer, token } = (await server.asMade?.()) ?? { issuer: server.issuer, token: await server.token() };
  const api = await openApi({ issuer, audience: AUDIENCE });
  try {
    return await api.ask(token);
  } finally {
    await api.close();
  }
}

interface Api {
  /** Status of the response, and the reason of a refusal. */
  ask(token: string): Promise<string>;
  close(): Promise<unknown>;
}

async function openApi(options: AuthenticateOptions): Promise<Api> {
  const gate = authenticate({ ...options, logger: recordingLogger() });
  const app = express();
  app.use('/v1', gate);
  app.get('/v1/orders', requireScope(SCOPE), (req, res) => void res.json({ caller: req.auth?.clientId }));
  const server = await listen(app);
  // Waits for keys, which a server without JWTs has not.
  await Promise.race([gate.ready().catch(() => undefined), setTimeout(2_000)]);
  return {
    async ask(token) {
      const response = await fetch(`${server.url}/v1/orders`, { headers: { authorization: `Bearer ${token}` } });
      const { code } = (await response.json()) as { code?: string };
      return code === undefined ? String(response.status) : `${response.status} ${code}`;
    },
    close: () => Promise.all([gate.close(), server.close()]),
  };
}

/** What an earlier token gets after a change, and after how long; a client that was not deleted gets a new token. */
async function timeChange(
  api: Api,
  server: RunningServer,
  change: () => Promise<unknown>,
  goesOn = true,
): Promise<string> {
  const earlier = await acceptedToken(api, server);
  await change();
  const isTold = server.options?.['generationSource'] !== undefined;
  if (!isTold && goesOn) await acceptedToken(api, server);
  const fromMs = performance.now();
  let seen = await api.ask(earlier);
  while (seen === '200' && performance.now() - fromMs < PATIENCE_MS) seen = await api.ask(earlier);
  const tookMs = Math.round(performance.now() - fromMs);
  if (goesOn) await acceptedToken(api, server);
  if (seen === '200') return '200 until `exp`';
  return `${seen.split(' ')[0]} ${isTold ? `after ${tookMs} ms` : 'after the first new token'}`;
}

/** Where times of issue are compared, a token of the second of a change is refused. */
async function acceptedToken(api: Api, server: RunningServer): Promise<string> {
  const untilMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const token = await server.token();
    const seen = await api.ask(token);
    if (seen === '200') return token;
    if (performance.now() > untilMs) throw new Error(`a new token is refused: ${seen}`);
    await setTimeout(50);
  }
}
