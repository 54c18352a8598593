import type { X509Certificate } from 'node:crypto';
import { AuthError } from '../core/errors';
import { describeNoToken } from './jws';

/** The parts of a request that can contain a token, or prove possession of its key, as any Node framework has them. */
export interface TokenRequest {
  readonly method?: string | undefined;
  /** Request target as received by the app. */
  readonly url?: string | undefined;
  /** The same, where a router has removed a prefix from `url`. */
  readonly originalUrl?: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Header names and values in turn, as node:http keeps them; shows repeated headers that `headers` hides. */
  readonly rawHeaders?: readonly string[] | undefined;
  /** The connection; its server says how many headers Node keeps. */
  readonly socket?:
    | {
        readonly remoteAddress?: string | undefined;
        readonly server?: { readonly maxHeadersCount?: unknown };
        getPeerX509Certificate?(): X509Certificate | undefined;
      }
    | undefined;
  /** Parsed body, if a parser ran before the gate. */
  readonly body?: unknown;
}

/** A header, by its name in lower case. node:http gives its headers a prototype, which a polluted one adds to. */
export function headerOf({ headers }: Pick<TokenRequest, 'headers'>, name: string): TokenRequest['headers'][string] {
  return Object.hasOwn(headers, name) ? headers[name] : undefined;
}

/** Whether a request presents its token with the DPoP scheme (RFC 9449 section 7.1). */
export function usesDpop(request: Pick<TokenRequest, 'headers'>): boolean {
  const authorization = headerOf(request, 'authorization');
  return typeof authorization === 'string' && /^dpop /i.test(authorization);
}

/** The schemes that present an access token. */
const BEARER = ['bearer'];
const BEARER_AND_DPOP = ['bearer', 'dpop'];
/** The usual header, recognised by one test (RFC 6750 section 2.1). */
const PLAIN_BEARER = /^Bearer [A-Za-z0-9\-._~+/]+=*$/;
const BEARER_LENGTH = 'Bearer '.length;
/** `server.maxHeadersCount` when it is not set. Node counts names and values, so it keeps 1,000 headers. */
const DEFAULT_MAX_RAW_HEADERS = 2_000;
/** RFC 9110 section 11.4: `auth-scheme 1*SP token68`. */
const CREDENTIALS = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?: +(.*))?$/s;
/** RFC 6750 section 2.1: `b64token`. */
const B64_TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
const BEARER_AFTER_COMMA = /,\s*bearer(?:\s|$)/i;
/** Also as parsers with nesting write it: `access_token[]`, `access_token[x]`, `[access_token]`. */
const ACCESS_TOKEN_NAME = /^\[?access_token(?:[[\]]|$)/;
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/**
 * Reads the bearer token of a request, from the Authorization header only (RFC 6750 section 2.1, RFC 9700 section
 * 4.3.2). Tokens in the query or in a form body are refused, with or without a header.
 *
 * @param dpop - whether the DPoP scheme is accepted too (RFC 9449 section 7.1)
 * @throws AuthError `missing_token`, `malformed_authorization`, `token_in_query` or `token_in_body`.
 */
export function bearerToken(request: TokenRequest, dpop = false): string {
  const token = fromHeader(request, dpop ? BEARER_AND_DPOP : BEARER);
  const query = request.url?.indexOf('?') ?? -1;
  if (query >= 0 && namesAccessToken(request.url!.slice(query + 1))) throw new AuthError('token_in_query');
  if (request.body !== undefined && hasFormToken(request)) throw new AuthError('token_in_body');
  if (token === undefined) throw new AuthError('missing_token');
  return token;
}

function fromHeader(request: TokenRequest, schemes: readonly string[]): string | undefined {
  const { rawHeaders, socket, headers } = request;
  const header = Object.hasOwn(headers, 'authorization') ? headers['authorization'] : undefined;
  // node:http keeps the first of two Authorization headers: which one counts must not be guessed.
  if (rawHeaders && countAuthorization(rawHeaders) > 1) throw malformedHeader('more than one Authorization header');
  // From this length on Node drops further headers silently.
  const count = socket?.server?.maxHeadersCount;
  const maxRawHeaders = typeof count !== 'number' ? DEFAULT_MAX_RAW_HEADERS : count > 0 ? 2 * count : Infinity;
  if (rawHeaders && rawHeaders.length >= maxRawHeaders) throw malformedHeader('Node may have dropped headers');
  if (header === undefined) return undefined;
  if (typeof header !== 'string') throw malformedHeader('the Authorization header is not a string');
  if (PLAIN_BEARER.test(header)) return header.slice(BEARER_LENGTH);

  const [, scheme, credentials] = CREDENTIALS.exec(header) ?? [];
  if (scheme === undefined || BEARER_AFTER_COMMA.test(header))
    throw malformedHeader('not one scheme with its credentials');
  // Another scheme is not an attempt at a bearer token: the plain challenge says what is expected (RFC 6750 section 3).
  if (!schemes.includes(scheme.toLowerCase())) return undefined;
  if (credentials === undefined || !B64_TOKEN.test(credentials))
    throw malformedHeader(describeNoToken(credentials ?? '') ?? `no single b64token after "${scheme}"`);
  return credentials;
}

function malformedHeader(privateDetail: string): AuthError {
  return new AuthError('malformed_authorization', { privateDetail });
}

function countAuthorization(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 13 && name.toLowerCase() === 'authorization') count++;
  }
  return count;
}

function hasFormToken(request: TokenRequest): boolean {
  // A member of that name in a JSON document is data of the API, not a token.
  const type = headerOf(request, 'content-type');
  if (typeof type !== 'string' || !FORM_TYPE.test(type)) return false;
  const { body } = request;
  if (body === null) return false;
  if (typeof body === 'string') return namesAccessToken(body);
  if (Buffer.isBuffer(body)) return namesAccessToken(body.toString('latin1'));
  return typeof body === 'object' && Object.keys(body).some((name) => ACCESS_TOKEN_NAME.test(name));
}

/** Whether a form-encoded string has a parameter that any parser reads as `access_token`, also as array or object. */
function namesAccessToken(encoded: string): boolean {
  // Skips the parser when the name cannot occur, not even percent-encoded.
  if (!encoded.includes('access_token') && !encoded.includes('%')) return false;
  return [...new URLSearchParams(encoded).keys()].some((name) => ACCESS_TOKEN_NAME.test(name));
}
