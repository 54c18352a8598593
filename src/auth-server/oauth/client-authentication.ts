import { matchesSecret } from '../clients/secrets';
import type { CompareDigests } from '../clients/secrets';
import { invalidRequest, RequestError } from '../errors';
import type { ClientRow, State } from '../storage/state';

/** An id and a secret as they were presented, not checked yet. */
export interface Credentials {
  readonly clientId: string;
  readonly secret: string;
}

/** Longer than any registered id and secret; not decoded. */
const MAX_BASIC_LENGTH = 4_096;

/**
 * Reads the client's credentials from HTTP Basic or from the body (RFC 6749 section 2.3.1).
 *
 * @param authorization - every Authorization header of the request
 * @returns `undefined` for missing and unreadable credentials: both get the response for a wrong secret
 * @throws RequestError `invalid_request` when the client uses two methods (section 2.3), or two ids.
 */
export function readCredentials(
  form: ReadonlyMap<string, string>,
  authorization: readonly string[],
): Credentials | undefined {
  const [header, ...more] = authorization;
  if (more.length > 0) throw invalidRequest('Send no more than one Authorization header.');
  const clientId = form.get('client_id');
  const secret = form.get('client_secret');
  if (header === undefined) return clientId && secret ? { clientId, secret } : undefined;
  if (secret !== undefined) {
    throw invalidRequest('Send the client secret in the Authorization header or in the body, not in both.');
  }
  const credentials = parseBasic(header);
  if (credentials && clientId !== undefined && clientId !== credentials.clientId) {
    throw invalidRequest('The client_id in the body is not the one of the Authorization header.');
  }
  return credentials;
}

/**
 * Finds the client that presents its secret.
 *
 * @throws RequestError `invalid_client`, with the same text and after the same work for missing credentials, an unknown
 * client, a wrong secret and a disabled client.
 */
export function authenticateClient(
  { clients }: State,
  credentials: Credentials | undefined,
  compare?: CompareDigests,
): ClientRow {
  const row = credentials && clients.get(credentials.clientId);
  const matches = matchesSecret(row?.secrets ?? [], credentials?.secret ?? '', compare);
  if (row && matches && !row.disabled) return row;
  // RFC 6749 section 5.2 asks for the scheme that the client used; RFC 9110 section 15.5.2 for one on every 401.
  const challenge = { 'WWW-Authenticate': 'Basic realm="token"' };
  throw new RequestError(401, 'invalid_client', 'Client authentication failed.', challenge);
}

/** Id and secret are form-encoded, then joined by a colon (RFC 6749 section 2.3.1, RFC 7617 section 2). */
function parseBasic(header: string): Credentials | undefined {
  if (header.length > MAX_BASIC_LENGTH) return undefined;
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header)?.[1];
  if (encoded === undefined || encoded.length % 4 === 1) return undefined;
  const [id = '', ...rest] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
  const clientId = formDecode(id);
  const secret = formDecode(rest.join(':'));
  return clientId && secret ? { clientId, secret } : undefined;
}

/** Decodes a form-encoded text (RFC 6749 appendix B); `undefined` when it is broken or not UTF-8. */
export function formDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
