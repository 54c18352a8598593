import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemSchedule } from '../../core/clock';
import { readBody } from '../../core/read-body';
import { logHandler } from '../../generation/http/handler';
import { wellKnownUrls } from '../../token/keys/discovery';
import type { PublishingIssuer, TestIssuer } from '../test-issuer/test-issuer';

/** Handles the requests of one endpoint. */
export type Handler = (req: IncomingMessage, res: ServerResponse) => void | Promise<void>;

/** Path of the key set. */
export const JWKS_PATH = '/.well-known/openid-configuration/jwks';

const GENERATIONS_PATH = '/generations';
const TOKEN_LIFETIME_SECONDS = 300;
const MAX_FORM_BYTES = 100_000;

/** Makes the endpoints of a test issuer, by method and path. */
export function issuerEndpoints({ testIssuer, jwks, log }: PublishingIssuer): ReadonlyMap<string, Handler> {
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

  const serveLog = logHandler({ log, schedule: systemSchedule, clock: testIssuer.clock.now });
  function generations(req: IncomingMessage, res: ServerResponse): void {
    req.url = req.url?.slice(GENERATIONS_PATH.length);
    serveLog(req, res);
  }

  return new Map<string, Handler>([
    ...wellKnownUrls(issuer).map((url) => [`GET ${new URL(url).pathname}`, metadata] as const),
    [`GET ${JWKS_PATH}`, (_req, res) => sendJson(res, 200, jwks)],
    [`GET ${GENERATIONS_PATH}`, generations],
    [`GET ${GENERATIONS_PATH}/stream`, generations],
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
