import { X509Certificate, createHash } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { LRUCache } from 'lru-cache';
import { AuthError } from '../../core/errors';
import type { Clock } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { NO_OPTIONS } from '../../core/objects';
import { isList, option } from '../../core/options';
import type { TableOf } from '../../core/options';
import { headerOf, usesDpop } from '../bearer';
import type { TokenRequest } from '../bearer';
import { clientUnit } from '../fair-queue';
import type { Caller } from '../fair-queue';
import type { SignatureVerifier } from '../signature';
import type { JsonObject } from '../strict-json';
import { bindingsOf } from '../verify';
import { DpopVerifier } from './dpop';
import type { DpopSettings } from './dpop';

/** Checks that the caller holds the key that its token is bound to. */
export class PossessionVerifier {
  readonly #settings: PossessionSettings;
  readonly #proofs: DpopVerifier | undefined;
  readonly #readCertificate: ReturnType<typeof certificateReader> | undefined;

  constructor(settings: PossessionSettings, signatures: SignatureVerifier) {
    const { dpop, mtls, issuers, clock, logger } = settings;
    const clockToleranceMs = Math.max(...issuers.map((issuer) => issuer.clockToleranceMs));
    this.#settings = settings;
    this.#proofs = dpop && new DpopVerifier(dpop, signatures, clock, clockToleranceMs, logger);
    this.#readCertificate = mtls && certificateReader(mtls);
  }

  /**
   * Checks that a token is bound to a key where that is required: what can be said about it without a request.
   *
   * @throws AuthError `binding_required`
   */
  requireBinding(claims: JsonObject): void {
    const { dpop, mtls, binding } = this.#settings;
    const { key, certificate } = bindingsOf(claims);
    const isMissing =
      (dpop?.required && key === undefined) ||
      (mtls?.required && certificate === undefined) ||
      (binding === 'any' && key === undefined && certificate === undefined);
    if (isMissing) throw new AuthError('binding_required');
  }

  /**
   * Checks the proofs of a request whose token is good (RFC 9449 section 7, RFC 8705 section 3). Rejects with an AuthError
   * `sender_constrained`, `binding_required`, `wrong_binding`, `invalid_dpop_proof`, `dpop_nonce_required`,
   * `too_many_proofs` or `replay_store_unavailable`.
   *
   * @param isTrial - does not remember the proof, so that it stays good for the gate that decides
   * @returns the nonce that the response should carry, where the one of the proof is aging (RFC 9449 section 8.2)
   */
  async verify(
    request: TokenRequest,
    token: string,
    { issuer, clientId, claims }: Holder,
    caller?: Caller,
    isTrial = false,
  ): Promise<string | undefined> {
    const { key, certificate } = bindingsOf(claims);
    if (this.#readCertificate && certificate !== undefined) checkBinding(certificate, this.#readCertificate(request));
    this.requireBinding(claims);
    if (!this.#proofs) return undefined;
    if (usesDpop(request)) {
      if (key === undefined) throw new AuthError('binding_required');
      const holder = { ...caller, client: clientUnit(issuer, clientId) };
      return this.#proofs.verify(request, token, key, holder, isTrial);
    }
    if (key !== undefined) {
      throw new AuthError('sender_constrained', { privateDetail: 'the token came with the Bearer scheme' });
    }
    return undefined;
  }

  /** The nonce for a response with `dpop_nonce_required`. */
  nonce(): string | undefined {
    return this.#proofs?.nonce();
  }
}

/** Whom a token was issued to. */
interface Holder {
  readonly issuer: string;
  readonly clientId: string;
  readonly claims: JsonObject;
}

interface PossessionSettings {
  readonly dpop: DpopSettings | undefined;
  readonly mtls: MtlsSettings | undefined;
  /** `'any'`: a token has to be bound, either way. */
  readonly binding: 'any' | undefined;
  /** The issuers; the largest of their clock tolerances applies to proofs. */
  readonly issuers: readonly { readonly clockToleranceMs: number }[];
  readonly clock: Clock;
  readonly logger: Logger;
}

function checkBinding(bound: unknown, proven: string | undefined): void {
  if (proven === undefined) {
    throw new AuthError('sender_constrained', { privateDetail: 'the request has no client certificate' });
  }
  if (bound !== proven) throw new AuthError('wrong_binding');
}

/** How tokens are accepted that are bound to a client certificate (RFC 8705). */
export interface MtlsOptions {
  /** Refuses tokens that are not bound to a certificate. Default `false`: bearer tokens are accepted as well. */
  readonly required?: boolean | undefined;
  /**
   * Header in which a proxy forwards the certificate of the client: `client-cert` (RFC 9440), `x-forwarded-client-cert`
   * (Envoy), or one with PEM, percent-encoded or on one line (nginx, Apache, AWS), or base64 of DER. In
   * `x-amzn-mtls-clientcert` and `x-forwarded-tls-client-cert` (Traefik) a chain may follow. The proxy must remove it from
   * the requests of clients. Default: the certificate of the TLS connection, which the server requests with
   * `requestCert: true`.
   */
  readonly header?: string | undefined;
  /** Addresses of these proxies, such as `10.0.0.0/8`; from any other one the header is not read. Required with `header`. */
  readonly trustedProxies?: readonly string[] | undefined;
}

const ENVOY_HEADER = 'x-forwarded-client-cert';
/** With the whole chain, the certificate of the client first: AWS in passthrough mode, and Traefik. */
const CHAIN_HEADERS: readonly string[] = ['x-amzn-mtls-clientcert', 'x-forwarded-tls-client-cert'];
/** Node's default limit for all headers of a request together. */
const MAX_HEADER_LENGTH = 16_384;

const HEADER = option('the name of a header', (given) => {
  return typeof given === 'string' && /^[a-z0-9!#$%&'*+.^_`|~-]+$/i.test(given) ? given.toLowerCase() : undefined;
});

const TRUSTED_PROXIES = option('an array of IP addresses and ranges such as 10.0.0.0/8', (given) => {
  const ranges = new BlockList();
  return isList(given) && given.every((range) => addRange(ranges, range)) ? ranges : undefined;
});

/** The option `mtls` of a factory. */
export const MTLS_OPTION = option.nested(
  { required: option.boolean(false), header: HEADER, trustedProxies: TRUSTED_PROXIES } satisfies TableOf<MtlsOptions>,
  (mtls, { factory }) => {
    const trustsAny = mtls.trustedProxies !== undefined && mtls.trustedProxies.rules.length > 0;
    if (trustsAny === (mtls.header !== undefined)) return mtls;
    throw new TypeError(`${factory}(): options "mtls.header" and "mtls.trustedProxies" must be given together`);
  },
);

/** Checked options. */
type MtlsSettings = NonNullable<ReturnType<typeof MTLS_OPTION.read>>;

/**
 * Makes the reader of client certificates: it returns the SHA-256 thumbprint of the one of a request, as `x5t#S256` has it;
 * `undefined` without a certificate.
 */
export function certificateReader({
  header,
  trustedProxies,
}: MtlsSettings): (request: TokenRequest) => string | undefined {
  if (header === undefined || !trustedProxies) return thumbprintOfConnection;
  const thumbprints = new LRUCache<string, string>({ max: 1_000 });

  return function thumbprintFromProxy(request) {
    const value = headerOf(request, header);
    if (typeof value !== 'string' || value.length > MAX_HEADER_LENGTH) return undefined;
    if (!isTrusted(trustedProxies, request.socket?.remoteAddress)) return undefined;
    const known = thumbprints.get(value, NO_OPTIONS);
    if (known !== undefined) return known;
    const thumbprint = thumbprintOf(header, value);
    if (thumbprint !== undefined) thumbprints.set(value, thumbprint, NO_OPTIONS);
    return thumbprint;
  };
}

/** A connection keeps its certificate. */
const ofConnections = new WeakMap<object, string>();

function thumbprintOfConnection({ socket }: TokenRequest): string | undefined {
  if (typeof socket?.getPeerX509Certificate !== 'function') return undefined;
  const known = ofConnections.get(socket);
  if (known !== undefined) return known;
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) return undefined;
  const thumbprint = hash(certificate);
  ofConnections.set(socket, thumbprint);
  return thumbprint;
}

function thumbprintOf(header: string, value: string): string | undefined {
  try {
    return header === ENVOY_HEADER
      ? thumbprintFromEnvoy(value)
      : thumbprintOfLeaf(value, CHAIN_HEADERS.includes(header));
  } catch {
    return undefined;
  }
}

/**
 * Of the only certificate, or of the first one of a chain. Elsewhere a second one is refused: a proxy that appends its
 * header to one of the client would let the client choose.
 */
function thumbprintOfLeaf(value: string, isChain = false): string {
  const [leaf = '', ...others] = splitCertificates(decodeURIComponent(value));
  if ((others.length > 0 && !isChain) || ![leaf, ...others].every((base64) => BASE64.test(base64))) {
    throw new TypeError('not one certificate');
  }
  return hash(new X509Certificate(Buffer.from(leaf, 'base64')));
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const [PEM_BEGIN, PEM_END] = ['-----BEGIN CERTIFICATE-----', /-----END CERTIFICATE-----\s*/];

/** The certificates in base64, however they are written; anything else becomes text that is not base64. */
function splitCertificates(text: string): readonly string[] {
  // RFC 9440 section 2.1: a byte sequence of RFC 8941, base64 between colons.
  if (text.startsWith(':') && text.endsWith(':')) return [text.slice(1, -1)];
  if (!text.startsWith(PEM_BEGIN)) return text.split(',');
  const blocks = text.split(PEM_END);
  if (blocks.pop() !== '') return [];
  // Line breaks become blanks (Apache) or tabs (nginx before 1.13.5) in a header.
  return blocks.map((block) => (block.startsWith(PEM_BEGIN) ? block.slice(PEM_BEGIN.length).replace(/\s+/g, '') : ''));
}

const ENVOY_PAIR = /([A-Za-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^",;]*))(?:;|$)/gy;

/**
 * Envoy writes pairs between semicolons, some values in quotes, and puts a comma before its own where it keeps those of
 * another proxy: then the first may be of the client. Names in the certificate are not quoted, so one can look like a
 * second `Hash`.
 */
function thumbprintFromEnvoy(value: string): string | undefined {
  const thumbprints: Record<string, string> = {};
  let length = 0;
  for (const [pair, name = '', quoted, plain = ''] of value.matchAll(ENVOY_PAIR)) {
    length += pair.length;
    const member = name.toLowerCase();
    if (member !== 'hash' && member !== 'cert') continue;
    if (Object.hasOwn(thumbprints, member)) return undefined;
    thumbprints[member] = member === 'hash' ? thumbprintOfHex(plain) : thumbprintOfLeaf(quoted ?? plain);
  }
  const [thumbprint, other = thumbprint] = Object.values(thumbprints);
  return length === value.length && thumbprint === other ? thumbprint : undefined;
}

function thumbprintOfHex(hex: string): string {
  if (!/^[0-9a-f]{64}$/i.test(hex)) throw new TypeError('not a SHA-256 hash');
  return Buffer.from(hex, 'hex').toString('base64url');
}

/** RFC 8705 section 3.1: base64url of the SHA-256 hash of the DER encoding. */
function hash({ raw }: X509Certificate): string {
  return createHash('sha256').update(raw).digest('base64url');
}

function addRange(ranges: BlockList, range: unknown): boolean {
  const [address = '', prefix, ...rest] = String(range).split('/');
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  const bits = family === 'ipv6' ? 128 : 32;
  if (typeof range !== 'string' || isIP(address) === 0 || rest.length > 0) return false;
  if (prefix === undefined) ranges.addAddress(address, family);
  else if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) return false;
  else ranges.addSubnet(address, Number(prefix), family);
  return true;
}

/** A server on `::` sees an IPv4 client as `::ffff:10.0.0.1`, which counts as `10.0.0.1`. */
function isTrusted(ranges: BlockList, address = ''): boolean {
  const version = isIP(address);
  return version !== 0 && ranges.check(address, version === 6 ? 'ipv6' : 'ipv4');
}
