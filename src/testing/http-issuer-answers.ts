import type { IncomingMessage, ServerResponse } from 'node:http';
import { wellKnownUrls } from '../token/keys/discovery';
import type { Jwks } from '../token/keys/static-keys';
import { sendJson } from './http-issuer-json';
import type { Answer } from './http-issuer-server';
import { answerTokenRequest } from './http-issuer-token';
import type { TestIssuer } from './test-issuer-parts';
import type { TestGenerations } from './test-issuer-generations';

/** What a test issuer tells over HTTP. */
export interface IssuerContents {
  readonly issuer: TestIssuer;
  readonly jwks: Jwks;
  readonly source: TestGenerations['source'];
}

/** Where the key set stands. */
export const JWKS_PATH = '/.well-known/openid-configuration/jwks';

/** Under three of them a reader that hears nothing takes the connection for dead. */
const HEARTBEAT_MS = 15_000;

/** Makes the addresses of a test issuer: method and path, and what answers there. */
export function issuerAnswers({ issuer, jwks, source }: IssuerContents): ReadonlyMap<string, Answer> {
  const [oidc, oauth] = wellKnownUrls(issuer.issuer).map((url) => `GET ${new URL(url).pathname}`) as [string, string];

  function showMetadata(_req: IncomingMessage, res: ServerResponse): void {
    sendJson(res, 200, {
      issuer: issuer.issuer,
      token_endpoint: `${issuer.issuer}/connect/token`,
      jwks_uri: issuer.issuer + JWKS_PATH,
      grant_types_supported: ['client_credentials'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      response_types_supported: [],
      subject_types_supported: ['public'],
    });
  }

  function showKeySet(_req: IncomingMessage, res: ServerResponse): void {
    sendJson(res, 200, jwks);
  }

  async function listGenerations(_req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { floors, nowMs } = await source.read(0);
    const entries = [...floors].map(([clientId, generation]) => ({ client_id: clientId, generation }));
    sendJson(res, 200, { now: Math.floor(nowMs), floors: entries });
  }

  async function streamGenerations(_req: IncomingMessage, res: ServerResponse): Promise<void> {
    const hint = (): void => void res.write('event: generation\ndata: {}\n\n');
    const stop = await source.watch(hint);
    const heartbeat = setInterval(() => res.write(':\n\n'), HEARTBEAT_MS).unref();
    res.once('close', () => {
      clearInterval(heartbeat);
      stop();
    });
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    // Makes the reader hear at once that the stream stands.
    res.write(':\n\n');
  }

  return new Map<string, Answer>([
    [oidc, showMetadata],
    [oauth, showMetadata],
    [`GET ${JWKS_PATH}`, showKeySet],
    ['GET /generations', listGenerations],
    ['GET /generations/stream', streamGenerations],
    ['POST /connect/token', (req, res) => answerTokenRequest(issuer, req, res)],
  ]);
}
