import { createHash, createPublicKey, randomUUID } from 'node:crypto';
import request from 'supertest';
import type { Test } from 'supertest';
import { dpop } from '../../src/gate/possession';
import type { DpopOptions } from '../../src/gate/possession';
import { gateApp } from './gate-app';
import type { GateApp, GateAppOptions } from './gate-app';
import { base64url, NOW, signer, token } from './issuer';
import type { Members } from './issuer';
import { testKey } from './keys';
import type { TestKey } from './keys';

/** Parts of a proof. Members of `header` and `claims` override good ones; `undefined` removes one. */
export interface ProofParts {
  /** The key of the caller. Default: {@link callerKey}. */
  readonly key?: TestKey;
  readonly method?: string;
  readonly url?: string;
  /** The access token that it is for. */
  readonly accessToken?: string;
  readonly header?: Members;
  readonly claims?: Members;
  /** The payload as raw text, instead of `claims`. */
  readonly payload?: string;
  /** Replaces the signer. */
  readonly sign?: (input: Buffer) => Buffer;
}

export const BASE_URL = 'https://api.test';

/** The key that the tokens of these tests are bound to. */
export const callerKey = (): TestKey => testKey('ES256', 'caller');

/** Only the members that a client publishes in its proofs. */
export function publicJwk({ privateKey }: TestKey): Record<string, unknown> {
  return { ...createPublicKey(privateKey).export({ format: 'jwk' }) };
}

/** The thumbprint of a key (RFC 7638), made independently of the code under test. */
export function thumbprint(key: TestKey): string {
  const { crv, e, kty, n, x, y } = publicJwk(key);
  const text = JSON.stringify(kty === 'RSA' ? { e, kty, n } : kty === 'OKP' ? { crv, kty, x } : { crv, kty, x, y });
  return createHash('sha256').update(text).digest('base64url');
}

const bound = new Map<string, string>();

/** An access token that is bound to a key: the same one for the same arguments, although ECDSA signatures differ. */
export function boundToken(key = callerKey(), claims: Members = {}, issuerKey = testKey()): string {
  const name = JSON.stringify([key.kid, thumbprint(key), claims, issuerKey.alg]);
  const made = bound.get(name) ?? token({ key: issuerKey, claims: { cnf: { jkt: thumbprint(key) }, ...claims } });
  bound.set(name, made);
  return made;
}

/** Signs a DPoP proof (RFC 9449 section 4.2) with node:crypto. */
export function proof(parts: ProofParts = {}): string {
  const { key = callerKey(), method = 'GET', url = `${BASE_URL}/v1/orders`, accessToken = boundToken() } = parts;
  const header = { typ: 'dpop+jwt', alg: key.alg, jwk: publicJwk(key), ...parts.header };
  const ath = createHash('sha256').update(accessToken).digest('base64url');
  const claims = { jti: randomUUID(), htm: method, htu: url, iat: NOW, ath, ...parts.claims };
  const input = `${base64url(JSON.stringify(header))}.${base64url(parts.payload ?? JSON.stringify(claims))}`;
  return `${input}.${(parts.sign ?? signer(key.alg, key.privateKey))(Buffer.from(input)).toString('base64url')}`;
}

/** An app whose gate accepts DPoP. */
export interface DpopApp extends GateApp {
  /** GET with the DPoP scheme. Default: a good token with a good proof. */
  send(sent?: { token?: string; proof?: string | null; path?: string }): Test;
}

/** @param possession - further kinds, besides DPoP */
export function dpopApp(proofs: DpopOptions = {}, { possession = [], ...options }: GateAppOptions = {}): DpopApp {
  return withProofs(gateApp({ possession: [dpop({ baseUrl: BASE_URL, ...proofs }), ...possession], ...options }));
}

export function withProofs(through: GateApp): DpopApp {
  return {
    ...through,
    send({ token = boundToken(), proof: sent = proof({ accessToken: token }), path = '/v1/orders' } = {}) {
      const test = request(through.app).get(path).set('Authorization', `DPoP ${token}`);
      return sent === null ? test : test.set('DPoP', sent);
    },
  };
}
