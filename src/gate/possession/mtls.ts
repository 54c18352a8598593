import { createHash, X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { callNow } from '../core/callbacks';
import { AuthError } from '../core/errors';
import { attempt, NO_OPTIONS } from '../core/objects';
import { option, readOptions, type TableOf } from '../core/options';
import type { TokenRequest } from '../token/bearer';
import { Possession } from './possession';

/** How the certificate of a client is found. */
export interface MtlsOptions {
  /**
   * Returns the certificate of the client of a request: an `X509Certificate`, one certificate in PEM, or base64 of its DER.
   * Behind a proxy it reads the header in which the proxy forwards the certificate, and which the proxy must remove from the
   * requests of clients: docs/possession.md has the line for each. Default: the certificate of the TLS connection, which the
   * server requests with `requestCert: true`.
   */
  readonly certificate?: ((request: IncomingMessage) => string | X509Certificate | undefined) | undefined;
}

/**
 * Accepts tokens that are bound to a client certificate (RFC 8705) if the request has that certificate. The gate
 * compares SHA-256 thumbprints; the authorization server decides which certificates it trusts.
 *
 * @throws TypeError when an option is wrong
 *
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { mtls } from 'tillgate/possession';
 *
 * const gate = authenticate({
 *   issuer: 'https://login.example.com',
 *   audience: 'https://api.example.com',
 *   possession: [mtls({ certificate: (req) => decodeURIComponent(String(req.headers['x-client-certificate'] ?? '')) })],
 * });
 * ```
 */
export function mtls(options: MtlsOptions = {}): Possession {
  const { certificate } = readOptions('mtls', options, {
    certificate: option.callable<MtlsOptions['certificate']>(),
  } satisfies TableOf<MtlsOptions>);
  const thumbprintOf = certificate ? forwardedReader(certificate) : thumbprintOfConnection;
  return new Possession({
    confirmation: 'x5t#S256',
    challenge: () => undefined,
    verify({ request, bound }) {
      const proven = thumbprintOf(request);
      if (proven === undefined) {
        const privateDetail = 'cnf.x5t#S256 is not proven: the request has no client certificate';
        throw new AuthError('sender_constrained', { privateDetail });
      }
      if (bound !== proven) {
        throw new AuthError('wrong_binding', { privateDetail: 'the certificate is not that of cnf.x5t#S256' });
      }
      return undefined;
    },
  });
}

/** A connection keeps its certificate. */
const ofConnections = new WeakMap<object, string>();

function thumbprintOfConnection({ socket }: TokenRequest): string | undefined {
  if (typeof socket?.getPeerX509Certificate !== 'function') return undefined;
  const known = ofConnections.get(socket);
  if (known !== undefined) return known;
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) return undefined;
  const thumbprint = hash(certificate.raw);
  ofConnections.set(socket, thumbprint);
  return thumbprint;
}

/** Node's default limit for all headers of a request together. */
const MAX_LENGTH = 16_384;

function forwardedReader(
  certificate: NonNullable<MtlsOptions['certificate']>,
): (request: TokenRequest) => string | undefined {
  const thumbprints = new LRUCache<string, string>({ max: 1_000 });

  function read(request: TokenRequest): string | undefined {
    // The app's function gets the app's request.
    const given: unknown = callNow(() => certificate(request as IncomingMessage));
    if (given instanceof X509Certificate) return hash(given.raw);
    if (typeof given !== 'string' || given.length > MAX_LENGTH) return undefined;
    const thumbprint = thumbprints.get(given, NO_OPTIONS) ?? hash(new X509Certificate(derOf(given)).raw);
    thumbprints.set(given, thumbprint, NO_OPTIONS);
    return thumbprint;
  }

  // A caller can send anything in place of a proxy: an invalid value is a missing certificate, not an outage.
  return (request) => attempt(() => read(request));
}

/** Line breaks become blanks (Apache) or tabs (nginx before 1.13.5) in a header. */
const PEM = /^\s*-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Reads one certificate. A second one is refused: otherwise a client could choose, if the proxy appends its header to that
 * of the client.
 */
function derOf(text: string): Buffer {
  const base64 = PEM.exec(text)?.[1]?.replace(/\s+/g, '') ?? text;
  if (!BASE64.test(base64)) throw new TypeError('not one certificate');
  return Buffer.from(base64, 'base64');
}

/** RFC 8705 section 3.1: base64url of the SHA-256 hash of the DER encoding. */
function hash(der: Buffer): string {
  return createHash('sha256').update(der).digest('base64url');
}
