import type { RequestListener } from 'node:http';
import { createApp } from './app';
import { readNewClient } from './client-input';
import { toResource } from './client-resource';
import type { ClientResource, ClientWithSecret } from './client-resource';
import { writeDurably } from './durable-file';
import { generationsStream } from './generations-stream';
import { newSigningKey } from './keys';
import { readAuthServerOptions } from './options';
import type { AuthServerOptions } from './options';
import { createPublisher } from './publisher';
import { createReconciler } from './reconciler';
import { createRegistry } from './registry';
import { keyRotation } from './rotation';
import { Store } from './store';
import { tokenRateLimit } from './token-rate-limit';
import { createTokens } from './tokens';

/** What a client registers with: the body of `POST /clients`. */
export interface ClientRegistration {
  readonly client_id: string;
  /** Free text. Default `''`. */
  readonly description?: string;
  /** One or more scopes, separated by spaces. */
  readonly scope: string;
}

/** The embedded token server; it listens nowhere by itself. */
export interface AuthServer {
  /** For `http.createServer()`, supertest, or `app.use()`. */
  readonly handler: RequestListener;
  /** Registers a client, as `POST /clients` does. Rejects with `code` `invalid_request` or `client_exists`. */
  register(client: ClientRegistration): Promise<ClientWithSecret>;
  /** The registered clients, as `GET /clients` shows them. */
  list(): ClientResource[];
  /** Signs with a new key from now on; the one before stays published until the last token under it has expired. */
  rotateKeys(): Promise<void>;
  /** Ends the open streams, finishes the changes under way, and gives the data directory free. */
  close(): Promise<void>;
}

/**
 * Makes the embedded token server, for development: client credentials grant, registration, generations, key set, kept
 * in a directory so that nothing that was answered is lost, `kill -9` or not.
 *
 * @throws TypeError when an option is wrong, and always in production.
 * @throws Error when the data directory is in use by another process, or its state cannot be read.
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { createAuthServer } from 'tillgate/auth-server';
 *
 * async function start() {
 *   const issuer = 'http://127.0.0.1:4000';
 *   const tokens = await createAuthServer({ issuer, audience: 'http://127.0.0.1:3000', dataDir: '.tillgate' });
 *   createServer(tokens.handler).listen(4000, '127.0.0.1');
 * }
 * ```
 */
export async function createAuthServer(options: AuthServerOptions): Promise<AuthServer> {
  const settings = readAuthServerOptions(options);
  const { clock, schedule, logger, signingAlgorithm } = settings;
  const newKeys = async () => ({ signing: await newSigningKey(signingAlgorithm), retired: [] });
  const store = await Store.open({ dataDir: settings.dataDir, clock, logger, write: writeDurably, newKeys });
  const rotate = keyRotation(store, settings);
  if (store.state.keys.signing.alg !== signingAlgorithm) await orClose(store, rotate());

  const tokens = createTokens({
    ...settings,
    lifetimeSeconds: settings.tokenLifetimeSeconds,
    state: () => store.state,
  });
  const publisher = createPublisher({ source: settings.generations, schedule, logger });
  const reconciler =
    settings.generations && createReconciler({ ...settings, source: settings.generations, store, publisher });
  await reconciler?.start();
  const registry = createRegistry(store, publisher);
  const limit = settings.rateLimit ? tokenRateLimit(settings.rateLimit, clock) : undefined;
  const stream = generationsStream(store, schedule);

  return {
    handler: createApp({ settings, store, registry, tokens, rotate, stream, limit }),
    async register(client) {
      const { row, secret } = await registry.register(readNewClient(client, settings.scopes));
      return { ...toResource(row), client_secret: secret };
    },
    list: () => registry.list().map(toResource),
    async rotateKeys() {
      await rotate();
    },
    async close() {
      stream.close();
      reconciler?.close();
      publisher.close();
      await store.close();
    },
  };
}

/** A start that fails leaves the directory free. */
async function orClose(store: Store, work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    await store.close();
    throw error;
  }
}
