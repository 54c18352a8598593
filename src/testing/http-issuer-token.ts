import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendJson } from './http-issuer-json';
import type { TestIssuer } from './test-issuer-parts';

const LIFETIME_SECONDS = 300;

/**
 * Answers `POST /connect/token`, client credentials grant (RFC 6749 section 4.4), for every client id and secret, by
 * HTTP Basic or in the form: a test issuer knows nobody, so that there is nobody to register.
 */
export async function answerTokenRequest(issuer: TestIssuer, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const form = new URLSearchParams(await readText(req));
  const clientId = basicUser(req.headers.authorization) ?? form.get('client_id');
  const grantType = form.get('grant_type');
  if (!clientId) {
    res.setHeader('WWW-Authenticate', 'Basic realm="token"');
    return sendJson(
      res,
      401,
      refusal('invalid_client', 'Send a client_id, in the form or by HTTP Basic; any will do.'),
    );
  }
  if (grantType !== 'client_credentials') {
    const error = grantType === null ? 'invalid_request' : 'unsupported_grant_type';
    return sendJson(res, 400, refusal(error, 'Send grant_type=client_credentials in a form-encoded body.'));
  }
  const scope = form.get('scope') ?? undefined;
  sendJson(res, 200, {
    access_token: issuer.token({ clientId, scope, lifetimeSeconds: LIFETIME_SECONDS }),
    token_type: 'Bearer',
    expires_in: LIFETIME_SECONDS,
    scope,
  });
}

/** RFC 6749 section 5.2. */
function refusal(error: string, description: string): object {
  return { error, error_description: description };
}

/** Id and secret are form-encoded first (RFC 6749 section 2.3.1). */
function basicUser(authorization = ''): string | undefined {
  const encoded = /^Basic +(\S+)$/i.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const [id = ''] = Buffer.from(encoded, 'base64').toString().split(':');
  return new URLSearchParams(`id=${id}`).get('id') ?? undefined;
}

async function readText(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
