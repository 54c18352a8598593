import { constants, createPrivateKey, randomUUID, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Clock } from '../../core/clock';
import { isObject, ownMembers, ownValue } from '../../core/objects';
import { ALGORITHMS, isCompatible } from '../algorithms';
import type { Algorithm } from '../algorithms';

/** The private key of this API at the authorization server. */
export interface SigningKey {
  readonly key: KeyObject;
  readonly algorithm: Algorithm;
  readonly keyId: string | undefined;
}

/** As whom the endpoint is asked. Without a secret and a key, the client certificate of the connection says it. */
export interface ClientCredential {
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  readonly signingKey?: SigningKey | undefined;
}

/** What a request carries to authenticate its client. */
export interface ClientAuthentication {
  readonly authorization?: string;
  /** Further members of the form. */
  readonly form: Readonly<Record<string, string>>;
}

/** How long an assertion is valid; each one is sent once. */
const ASSERTION_SECONDS = 60;
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
/** Without `alg` in the key the first one that fits is used. */
const PREFERRED: readonly Algorithm[] = ['ES256', 'ES384', 'ES512', 'EdDSA', 'RS256', 'PS256'];

/**
 * Reads a private key (RFC 7517) for `private_key_jwt`.
 *
 * @returns `undefined` for anything else; no error of Node is passed on, because it could quote the key
 */
export function readSigningKey(jwk: unknown): SigningKey | undefined {
  const [alg, kid] = [ownValue(jwk, 'alg'), ownValue(jwk, 'kid')];
  if (!isObject(jwk) || (kid !== undefined && typeof kid !== 'string')) return undefined;
  let key: KeyObject;
  try {
    key = createPrivateKey(ownMembers({ key: jwk, format: 'jwk' as const }));
  } catch {
    return undefined;
  }
  const candidates = alg === undefined ? PREFERRED : ALGORITHMS.filter((known) => known === alg);
  const algorithm = candidates.find((candidate) => isCompatible(key, candidate));
  return algorithm && { key, algorithm, keyId: kid };
}

/** Makes the function that authenticates each request (RFC 6749 section 2.3.1, RFC 7523 section 2.2, RFC 8705 section 2). */
export function clientAuthentication(
  { clientId, clientSecret, signingKey }: ClientCredential,
  issuer: string,
  clock: Clock,
): () => Promise<ClientAuthentication> {
  if (signingKey) {
    return async () => {
      const client_assertion = await signAssertion(signingKey, { clientId, issuer, nowMs: clock() });
      return { form: { client_assertion_type: ASSERTION_TYPE, client_assertion } };
    };
  }
  // RFC 8705 section 2: the id in the form says which client the certificate has to be of.
  if (clientSecret === undefined) return () => Promise.resolve({ form: { client_id: clientId } });
  const credentials = `${formEncode(clientId)}:${formEncode(clientSecret)}`;
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  return () => Promise.resolve({ authorization, form: {} });
}

/** RFC 6749 section 2.3.1: id and secret are form-encoded before they are joined. */
function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

/** A JWT that only the issuer accepts, and only once (RFC 7523 section 3). */
function signAssertion(
  { key, algorithm, keyId }: SigningKey,
  { clientId, issuer, nowMs }: { readonly clientId: string; readonly issuer: string; readonly nowMs: number },
): Promise<string> {
  const iat = Math.floor(nowMs / 1000);
  const claims = { iss: clientId, sub: clientId, aud: issuer, jti: randomUUID(), iat, exp: iat + ASSERTION_SECONDS };
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  const input = `${encode({ alg: algorithm, typ: 'JWT', kid: keyId })}.${encode(claims)}`;
  const hash = algorithm.startsWith('Ed') ? null : `sha${algorithm.slice(2)}`;
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  const parameters = algorithm.startsWith('PS') ? pss : algorithm.startsWith('ES') ? ES : {};
  return new Promise((resolve, reject) => {
    // Off the main thread: a flood of opaque tokens must not hold it with RSA signatures.
    sign(hash, Buffer.from(input), ownMembers({ key, ...parameters }), (error, signature) => {
      if (error) reject(new Error('the client assertion could not be signed'));
      else resolve(`${input}.${signature.toString('base64url')}`);
    });
  });
}

/** RFC 7518 section 3.4: r and s concatenated, not DER. */
const ES = { dsaEncoding: 'ieee-p1363' } as const;
