import type { RequestListener } from 'node:http';
import type { GenerationSource } from '../generation/log';
import { createApp } from './app';
import { listClients, registerClient } from './clients/api';
import type { ClientResource, ClientWithSecret } from './clients/client';
import { openGenerations } from './generations';
import { readAuthServerOptions } from './options';
import type { AuthServerOptions } from './options';
import { writeDurably } from './storage/durable-file';
import { newSigningKey, rotateKeys } from './storage/keys';
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
  /** Its changes, for a gate in this process: what `/generations` serves to the others. */
  readonly generations: GenerationSource;
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
  const { signingAlgorithm } = settings;
  const newKeys = async () => ({ signing: await newSigningKey(signingAlgorithm), retired: [] });
  const store = await Store.open({ ...settings, write: writeDurably, newKeys });
  try {
    if (store.state.keys.signing.alg !== signingAlgorithm) await rotateKeys(store, settings);
  } catch (error) {
    await store.close();
    throw error;
  }

  const generations = await openGenerations(settings, store);
  const context = { settings, store, generations, lastGranted: new Map<string, readonly string[]>() };

  return {
    handler: createApp(context),
    generations: generations.source,
    // Async, so that a wrong client is a rejection.
    register: async (client) => registerClient(context, client),
    list: () => listClients(store.state),
    async rotateKeys() {
      await rotateKeys(store, settings);
    },
    async close() {
      generations.close();
      await store.close();
    },
  };
}
