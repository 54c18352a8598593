import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import request from 'supertest';
import { createAuthServer } from '../../../src/cli/auth-server';
import type { GenerationSource } from '../../../src/gate/generation';
import { recordingLogger } from '../../support/log';
import { API } from './guarded-api';

/** A client credential as it is registered. */
export interface NewClient {
  readonly client_id: string;
  readonly description: string;
  readonly scope: string;
}

/** The embedded token server, listening on loopback, with its data in a folder of its own. */
export interface EmbeddedServer {
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly generations: GenerationSource;
  /** Registers a client and returns its secret. */
  register(client: NewClient): Promise<string>;
  /** Changes the Description of a client and returns the token that takes the place of the discarded ones. */
  describe(clientId: string, description: string): Promise<string>;
  rotateKeys(): Promise<void>;
  close(): Promise<void>;
}

/** @param path - path of the issuer, such as `/tenant` */
export async function startEmbeddedServer(path = ''): Promise<EmbeddedServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tillgate-interop-'));
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
  const logger = recordingLogger();
  const auth = await createAuthServer({ issuer, audience: API, dataDir, rateLimit: false, logger });
  server.on('request', auth.handler);
  return {
    issuer,
    tokenEndpoint: `${issuer}/connect/token`,
    generations: auth.generations,
    async register(client) {
      const { body } = await request(issuer).post('/clients').send(client).expect(201);
      return body.client_secret;
    },
    async describe(clientId, description) {
      const address = `/clients/${encodeURIComponent(clientId)}`;
      const { body } = await request(issuer).patch(address).send({ description }).expect(200);
      return body.token.access_token;
    },
    rotateKeys: () => auth.rotateKeys(),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await auth.close();
      await rm(dataDir, { recursive: true });
    },
  };
}
