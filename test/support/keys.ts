import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import rsaKeys from './rsa-keys.json';

/** A key pair with the JWK that an issuer would publish for it. */
export interface TestKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly jwk: Readonly<Record<string, unknown>>;
}

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };
const made = new Map<string, TestKey>();

/** The key pair of that algorithm and name, made at the first call. */
export function testKey(alg = 'ES256', kid = `${alg}-1`): TestKey {
  const name = `${alg} ${kid}`;
  const key = made.get(name) ?? newKey(alg, kid);
  made.set(name, key);
  return key;
}

/** A new key pair on every call. */
export function newKey(alg = 'ES256', kid = `${alg}-1`, rsa: { modulusLength?: number } = {}): TestKey {
  return asTestKey(privateKeyFor(alg, rsa.modulusLength ?? 2048), alg, kid);
}

/** The key set document of some keys. */
export function jwks(...keys: readonly TestKey[]): { keys: Readonly<Record<string, unknown>>[] } {
  return { keys: keys.map(({ jwk }) => jwk) };
}

function asTestKey(privateKey: KeyObject, alg: string, kid: string): TestKey {
  const material = createPublicKey(privateKey).export({ format: 'jwk' });
  return { kid, alg, privateKey, jwk: { ...material, kid, alg, use: 'sig' } };
}

function privateKeyFor(alg: string, modulusLength: number): KeyObject {
  const namedCurve = CURVES[alg];
  if (namedCurve !== undefined) return generateKeyPairSync('ec', { namedCurve }).privateKey;
  if (alg.startsWith('Ed')) return generateKeyPairSync('ed25519').privateKey;
  return rsaKey(modulusLength);
}

/** Throw-away RSA keys for tests, each handed out once per file: generating one takes up to half a second. The first is that of data directories. */
const unusedRsaKeys = rsaKeys.slice(1).values();

function rsaKey(modulusLength: number): KeyObject {
  const { value } = modulusLength === 2048 ? unusedRsaKeys.next() : { value: undefined };
  if (value) return createPrivateKey({ key: value, format: 'jwk' });
  return generateKeyPairSync('rsa', { modulusLength }).privateKey;
}
