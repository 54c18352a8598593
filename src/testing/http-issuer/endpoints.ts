import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody } from '../../core/read-body';
import { wellKnownUrls } from '../../token/keys/discovery';
import type { PublishingIssuer, TestIssuer } from '../test-issuer/test-issuer';

/** Handles the requests of one endpoint. */
export type Handler = (req: IncomingMessage, res: ServerResponse) => void | Promise<void>;

/** Path of the key set. */
export const JWKS_PATH = '/.well-known/openid-configuration/jwks';

/** Less than a third of the time after which a reader gives up on a silent connection. */
const HEARTBEAT_MS = 15_000;
const TOKEN_LIFETIME_SECONDS = 300;
const MAX_FORM_BYTES = 100_000;

/** Makes the endpoints of a test issuer, by method and path. */
export function issuerEndpoints({ testIssuer, jwks, source }: PublishingIssuer): ReadonlyMap<string, Handler> {
  const { issuer } = testIssuer;

  function metadata(_req: IncomingMessage, res: ServerResponse): void {
    sendJson(res, 200, {
      issuer,
      token_endpoint: `${issuer}/connect/token`,
      jwks_uri: issuer + JWKS_PATH,
      grant_types_supported: ['client_credentials'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      response_types_supported: [],
      subject_types_supported: ['public'],
    });
  }

  async function generations(_req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { floors, nowMs } = await source.read(0);
    const entries = [...floors].map(([clientId, generation]) => ({ client_id: clientId, generation }));
    sendJson(res, 200, { now: Math.floor(nowMs), floors: entries });
  }

  async function generationStream(_req: IncomingMessage, res: ServerResponse): Promise<void> {
    const stop = await source.watch(() => void res.write('event: generation\ndata: {}\n\n'));
    const heartbeat = setInterval(() => res.write(':\n\n'), HEARTBEAT_MS).unref();
    res.once('close', () => {
      clearInterval(heartbeat);
      stop();
    });
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    // Sends the headers now, so that the reader knows that the stream is open.
    res.write(':\n\n');
  }

  return new Map<string, Handler>([
    ...wellKnownUrls(issuer).map((url) => [`GET ${new URL(url).pathname}`, metadata] as const),
    [`GET ${JWKS_PATH}`, (_req, res) => sendJson(res, 200, jwks)],
    ['GET /generations', generations],
    ['GET /generations/stream', generationStream],
    ['POST /connect/token', (req, res) => issueToken(testIssuer, req, res)],
  ]);
}

/**
 * Client credentials grant (RFC 6749 sections 4.4 and 5.2) for any client id and secret, by HTTP Basic or in the form: a
 * test issuer has no registered clients.
 */
async function issueToken(issuer: TestIssuer, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const form = new URLSearchParams((await readBody(req, MAX_FORM_BYTES))?.toString());
  const clientId = basicUser(req.headers.authorization) ?? form.get('client_id');
  const grantType = form.get('grant_type');
  if (!clientId) {
    res.setHeader('WWW-Authenticate', 'Basic realm="token"');
    const error_description = 'Send a client_id, in the form or by HTTP Basic; any will do.';
    return sendJson(res, 401, { error: 'invalid_client', error_description });
  }
  if (grantType !== 'client_credentials') {
    const error = grantType === null ? 'invalid_request' : 'unsupported_grant_type';
    const error_description = 'Send grant_type=client_credentials in a form-encoded body.';
    return sendJson(res, 400, { error, error_description });
  }
  const scope = form.get('scope') ?? undefined;
  sendJson(res, 200, {
    access_token: issuer.token({ clientId, scope, lifetimeSeconds: TOKEN_LIFETIME_SECONDS }),
    token_type: 'Bearer',
    expires_in: TOKEN_LIFETIME_SECONDS,
    scope,
  });
}

/** Client id and secret are form-encoded first (RFC 6749 section 2.3.1). */
function basicUser(authorization = ''): string | undefined {
  const encoded = /^Basic +(\S+)$/i.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const [id = ''] = Buffer.from(encoded, 'base64').toString().split(':');
  return new URLSearchParams(`id=${id}`).get('id') ?? undefined;
}

/** Sends JSON that must not be cached. */
export function sendJson(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  res.end(JSON.stringify(body));
}
