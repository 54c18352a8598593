import { formDecode } from './form';
import type { Form } from './form';
import { OAuthError } from './oauth-error';
import { matchesSecret } from './secrets';
import type { CompareDigests } from './secrets';
import type { ClientRow, State } from './state';

/** An id and a secret as they were presented, not checked yet. */
export interface PresentedCredentials {
  readonly clientId: string;
  readonly secret: string;
}

/** Longer ones than ever were registered are not decoded. */
const LONGEST_BASIC = 4_096;

/**
 * Reads the client's credentials from HTTP Basic or from the body (RFC 6749 section 2.3.1). `undefined` when there are
 * none, or none that could be anybody's: the answer is then the one for a wrong secret.
 *
 * @throws OAuthError `invalid_request` when the client uses two methods at once (section 2.3), or two ids.
 */
export function readCredentials(form: Form, authorization: readonly string[]): PresentedCredentials | undefined {
  const [header, ...more] = authorization;
  if (more.length > 0) throw new OAuthError('invalid_request', 'Send no more than one Authorization header.');
  const clientId = form.get('client_id');
  const secret = form.get('client_secret');
  if (header === undefined) return clientId && secret ? { clientId, secret } : undefined;
  if (secret !== undefined) {
    throw new OAuthError(
      'invalid_request',
      'Send the client secret in the Authorization header or in the body, not in both.',
    );
  }
  const credentials = parseBasic(header);
  if (credentials && clientId !== undefined && clientId !== credentials.clientId) {
    throw new OAuthError('invalid_request', 'The client_id in the body is not the one of the Authorization header.');
  }
  return credentials;
}

/**
 * Finds the client that presents its secret.
 *
 * @throws OAuthError `invalid_client`, the same in text and in time, for no client, an unknown one, a wrong secret, and a disabled one.
 */
export function authenticateClient(
  { clients }: State,
  credentials: PresentedCredentials | undefined,
  compare?: CompareDigests,
): ClientRow {
  const row = credentials && clients.get(credentials.clientId);
  const matches = matchesSecret(row?.secrets ?? [], credentials?.secret ?? '', compare);
  if (row && matches && !row.disabled) return row;
  // RFC 6749 section 5.2: the challenge names the scheme that the client used; HTTP wants one on every 401.
  throw new OAuthError('invalid_client', 'Client authentication failed.', 401, {
    'WWW-Authenticate': 'Basic realm="token"',
  });
}

/** Id and secret are form-encoded first and joined by a colon then (RFC 6749 section 2.3.1, RFC 7617 section 2). */
function parseBasic(header: string): PresentedCredentials | undefined {
  if (header.length > LONGEST_BASIC) return undefined;
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header)?.[1];
  if (encoded === undefined || encoded.length % 4 === 1) return undefined;
  const [id = '', ...rest] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
  if (rest.length === 0) return undefined;
  const clientId = formDecode(id);
  const secret = formDecode(rest.join(':'));
  return clientId && secret ? { clientId, secret } : undefined;
}
