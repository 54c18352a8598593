import type { RequestListener } from 'node:http';
import { createApp } from './app';
import { readNewClient } from './clients/input';
import { createRegistry } from './clients/registry';
import { toResource } from './clients/client';
import type { ClientResource, ClientWithSecret } from './clients/client';
import { createPublisher } from './generations/publisher';
import { sentinelKeeper } from './generations/sentinel';
import { generationsStream } from './generations/stream';
import { createTokens } from './oauth/tokens';
import { readAuthServerOptions } from './options';
import type { AuthServerOptions, AuthServerSettings } from './options';
import { writeDurably } from './storage/durable-file';
import { newSigningKey, rotatedKeys } from './storage/keys';
import { Store } from './storage/store';

/** What a client registers with: the body of `POST /clients`. */
export interface ClientRegistration {
  readonly client_id: string;
  /** Free text. Default `''`. */
  readonly description?: string;
  /** One or more scopes, separated by spaces. */
  readonly scope: string;
}

/** The embedded token server; it does not listen by itself. */
export interface AuthServer {
  /** For `http.createServer()`, supertest, or `app.use()`. */
  readonly handler: RequestListener;
  /** Registers a client, as `POST /clients` does. Rejects with `code` `invalid_request` or `client_exists`. */
  register(client: ClientRegistration): Promise<ClientWithSecret>;
  /** The registered clients, as `GET /clients` shows them. */
  list(): ClientResource[];
  /** Signs with a new key from now on; earlier keys stay published until their last token has expired. */
  rotateKeys(): Promise<void>;
  /** Ends the open streams, finishes the pending changes, and releases the data directory. */
  close(): Promise<void>;
}

/**
 * Makes the embedded token server, for development: client credentials grant, registration, generations, key set, kept
 * in a directory. No change is lost once the response says that it was made, not even by `kill -9`.
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
  const rotateKeys = keyRotation(store, settings);
  try {
    if (store.state.keys.signing.alg !== signingAlgorithm) await rotateKeys();
  } catch (error) {
    await store.close();
    throw error;
  }

  const tokens = createTokens({ ...settings, state: () => store.state });
  const source = settings.generationSource;
  const publisher = createPublisher({ source, schedule, logger });
  const keeper = source && sentinelKeeper({ source, store, publisher, schedule, logger });
  await keeper?.start();
  const registry = createRegistry(store, publisher);
  const stream = generationsStream(store, schedule);

  return {
    handler: createApp({ settings, store, registry, tokens, rotateKeys, stream }),
    async register(client) {
      const { row, secret } = await registry.register(readNewClient(client, settings.scopes));
      return { ...toResource(row), client_secret: secret };
    },
    list: () => registry.list().map(toResource),
    async rotateKeys() {
      await rotateKeys();
    },
    async close() {
      stream.close();
      keeper?.close();
      publisher.close();
      await store.close();
    },
  };
}

/** The clock of a resource server may be slow by this much. */
const SKEW_MS = 60_000;

/** Makes what rotates the signing key; resolves with the `kid` of the new one once it is on disk. */
function keyRotation(store: Store, settings: AuthServerSettings): () => Promise<string> {
  const publishedForMs = settings.tokenLifetimeSeconds * 1000 + SKEW_MS;
  return async function rotateKeys() {
    const next = await newSigningKey(settings.signingAlgorithm);
    return store.change(({ keys }, { nowMs }) => ({
      keys: rotatedKeys(keys, next, nowMs + publishedForMs, nowMs),
      value: next.kid,
    }));
  };
}
