import { constants, createSecretKey, sign, createPublicKey, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { ALGORITHMS, verifySignature, SignatureQueue, isCompatible } from '../../src/token/signature';
import type { Algorithm } from '../../src/token/signature';
import { importKey } from '../../src/token/keys/key-set';
import type { VerificationKey } from '../../src/token/keys/key-set';
import { parseToken } from '../../src/token/jws';
import { token } from '../support/issuer';
import type { TokenParts } from '../support/issuer';
import { newKey, testKey } from '../support/keys';
import type { TestKey } from '../support/keys';
import type { AuthError } from '../../src/core/errors';

const BAD = expect.objectContaining({ name: 'AuthError', reason: 'bad_signature' });

/** Verifies with the published half of the key of that algorithm. */
function verifyRaw(alg: string, raw: string, as = alg): void {
  const key = importKey(testKey(alg).jwk);
  if (typeof key === 'string') throw new Error(key);
  verifySignature(parseToken(raw), key.key, as as Algorithm);
}

function verify(alg: string, parts: TokenParts, as = alg): void {
  verifyRaw(alg, token({ key: testKey(alg), ...parts }), as);
}

describe('verifySignature', () => {
  it.each(['ES256', 'EdDSA', 'Ed25519'])(
    '%s: looks at the signature alone, whatever the times in the claims',
    (alg) => {
      expect(() => verify(alg, { claims: { exp: 1, nbf: 9_999_999_999 } })).not.toThrow();
    },
  );

  it.each(ALGORITHMS)('%s: accepts the signature of its key, and refuses that of another, cut or changed', (alg) => {
    const good = token({ key: testKey(alg) });
    expect(() => verify(alg, {})).not.toThrow();
    expect(() => verify(alg, { key: newKey(alg) })).toThrow(BAD);
    const [input, signature = ''] = [good.slice(0, good.lastIndexOf('.')), good.slice(good.lastIndexOf('.') + 1)];
    const bytes = Buffer.from(signature, 'base64url');
    const zero = Buffer.of(0);
    const changes = [
      bytes.subarray(1),
      bytes.subarray(0, -1),
      Buffer.concat([bytes, zero]),
      Buffer.concat([zero, bytes]),
    ];
    for (const changed of changes) {
      expect(() => verifyRaw(alg, `${input}.${changed.toString('base64url')}`)).toThrow(BAD);
    }
    bytes[0] = (bytes[0] ?? 0) ^ 1;
    expect(() => verifyRaw(alg, `${input}.${bytes.toString('base64url')}`)).toThrow(BAD);
  });

  it.each([
    ['RS256', 'PS256'],
    ['PS256', 'RS256'],
    ['RS256', 'RS384'],
    ['ES256', 'ES384'],
  ] as const)('refuses a signature by %s where %s is asked for', (alg, as) => {
    expect(() => verify(alg, {}, as)).toThrow(BAD);
  });

  it.each([0, 20, 31, 33, 48, 64])(
    'PS256: refuses a salt of %i bytes (RFC 7518 section 3.5: as long as the hash)',
    (saltLength) => {
      const { privateKey: key } = testKey('PS256');
      const padding = constants.RSA_PKCS1_PSS_PADDING;
      const signWith = (salt: number) => (input: Buffer) => sign('sha256', input, { key, padding, saltLength: salt });
      expect(() => verify('PS256', { sign: signWith(32) })).not.toThrow();
      expect(() => verify('PS256', { sign: signWith(saltLength) })).toThrow(BAD);
    },
  );

  it.each(['RS256', 'PS256'])('%s: refuses a signature without its leading zero byte (RFC 8017 section 8)', (alg) => {
    // One signature in 256 begins with a zero byte.
    let [input, bytes] = ['', Buffer.of(1)];
    for (let jti = 0; bytes[0] !== 0; jti++) {
      const raw = token({ key: testKey(alg), claims: { jti: `${jti}` } });
      input = raw.slice(0, raw.lastIndexOf('.'));
      bytes = Buffer.from(raw.slice(input.length + 1), 'base64url');
    }
    expect(() => verifyRaw(alg, `${input}.${bytes.toString('base64url')}`)).not.toThrow();
    expect(() => verifyRaw(alg, `${input}.${bytes.subarray(1).toString('base64url')}`)).toThrow(BAD);
  });

  it('keeps for operators what the library says of a key that cannot verify', () => {
    const raw = parseToken(token());
    expect(() => verifySignature(raw, createSecretKey(Buffer.alloc(32)), 'ES256')).toThrow(
      expect.objectContaining({
        reason: 'bad_signature',
        cause: expect.objectContaining({ code: 'ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE' }),
      }),
    );
  });
});

describe('the queue of signatures', () => {
  /** The public half, as a key source returns it. */
  function verificationKey({ kid, privateKey }: TestKey): VerificationKey {
    return { keyId: kid, key: createPublicKey(privateKey), algorithms: ['ES256'] };
  }

  const KEY = verificationKey(testKey());
  const FORGED = token({ key: newKey('ES256', testKey().kid) });

  /** A good token, different from those of other numbers, and at each call: ES256 signs at random. */
  const good = (number: number): string => token({ claims: { jti: `t${number}` } });

  /** Lets promises that are settled call back. */
  const settle = (): Promise<void> => new Promise(setImmediate);

  /** A queue whose turns a test runs; each signature takes `msEach`. */
  function testQueue(msEach = 0): { queue: SignatureQueue; turn: () => Promise<void>; turns: () => number } {
    const deferred: (() => void)[] = [];
    let nowMs = 0;
    const now = (): number => (nowMs += msEach) - msEach;
    return {
      queue: new SignatureQueue((task) => void deferred.push(task), now),
      turn() {
        deferred.shift()?.();
        return settle();
      },
      turns: () => deferred.length,
    };
  }

  /** Adds tokens, and notes in the order of the decisions: the number of a token, or the reason of its refusal. */
  function decisions(queue: SignatureQueue, tokens: readonly string[], key = KEY): unknown[] {
    const decided: unknown[] = [];
    for (const [number, raw] of tokens.entries()) {
      queue.verify(parseToken(raw), key.key, 'ES256').then(
        () => decided.push(number),
        (error: unknown) => decided.push((error as AuthError).reason),
      );
    }
    return decided;
  }

  it('verifies all tokens of one turn in the next, in the order of their arrival; a forged one refuses itself only', async () => {
    const { queue, turn, turns } = testQueue();
    const decided = decisions(queue, [good(0), good(1), FORGED, good(3)]);
    await settle();
    expect([decided, turns()]).toEqual([[], 1]);
    await turn();
    expect([decided, turns()]).toEqual([[0, 1, 'bad_signature', 3], 0]);
  });

  it('waits one turn again after it has been empty', async () => {
    const { queue, turn, turns } = testQueue();
    for (const number of [1, 2]) {
      const decided = decisions(queue, [good(number)]);
      expect(turns()).toBe(1);
      await turn();
      expect(decided).toEqual([0]);
    }
  });

  it('verifies at most 64 tokens per turn, the rest in the next one, before tokens that arrived later', async () => {
    const { queue, turn, turns } = testQueue();
    const first = decisions(
      queue,
      Array.from({ length: 65 }, (_, number) => good(number)),
    );
    await turn();
    expect([first.length, turns()]).toEqual([64, 1]);
    const later = decisions(queue, [good(100)]);
    expect(turns()).toBe(1);
    await turn();
    expect([first.length, later, turns()]).toEqual([65, [0], 0]);
  });

  it('ends a turn after 3 ms, and verifies at least one token in each', async () => {
    const tokens = [good(0), good(1), good(2), good(3)];
    const quick = testQueue(1);
    const decided = decisions(quick.queue, tokens);
    await quick.turn();
    expect(decided).toEqual([0, 1, 2]);

    const slow = testQueue(10);
    const oneByOne = decisions(slow.queue, tokens);
    for (const number of tokens.keys()) {
      await slow.turn();
      expect(oneByOne).toHaveLength(number + 1);
    }
  });

  describe('a token that waits already', () => {
    it('is verified once for all its requests, also when it is refused', async () => {
      const { queue, turn } = testQueue();
      const raw = good(0);
      const results = [raw, raw, FORGED, FORGED].map((each) => queue.verify(parseToken(each), KEY.key, 'ES256'));
      expect(results[1]).toBe(results[0]);
      expect(results[3]).toBe(results[2]);
      const settled = Promise.allSettled(results);
      await turn();
      expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected']);
    });

    it('is verified again after that turn', async () => {
      const { queue, turn, turns } = testQueue();
      const raw = good(0);
      const first = decisions(queue, [raw]);
      await turn();
      const second = decisions(queue, [raw]);
      expect([first, second, turns()]).toEqual([[0], [], 1]);
      await turn();
      expect(second).toEqual([0]);
    });

    it('is verified for itself where its key was replaced meanwhile', async () => {
      const { queue, turn } = testQueue();
      const raw = good(0);
      const replaced = decisions(queue, [raw], verificationKey(newKey('ES256', testKey().kid)));
      const current = decisions(queue, [raw]);
      await turn();
      expect([replaced, current]).toEqual([['bad_signature'], [0]]);
    });

    it('does not decide for another one with the same signature', async () => {
      const genuine = good(0);
      const [header, , signature = ''] = genuine.split('.');
      const altered = [header, good(1).split('.')[1], signature].join('.');
      expect([altered === genuine, altered.endsWith(signature)]).toEqual([false, true]);
      for (const [tokens, expected] of [
        [
          [genuine, altered],
          [0, 'bad_signature'],
        ],
        [
          [altered, genuine],
          ['bad_signature', 1],
        ],
        [
          [genuine, altered, genuine, altered],
          [0, 2, 'bad_signature', 'bad_signature'],
        ],
      ] as const) {
        const { queue, turn } = testQueue();
        const decided = decisions(queue, tokens);
        await turn();
        expect([...decided].sort()).toEqual([...expected].sort());
      }
    });
  });
});

describe('the algorithms of a key', () => {
  function rsaPss(hash?: string): KeyObject {
    const parameters = hash === undefined ? {} : { hashAlgorithm: hash, mgf1HashAlgorithm: hash };
    return generateKeyPairSync('rsa-pss', { modulusLength: 512 * 2, ...parameters }).publicKey;
  }

  it.each<[string, () => KeyObject, readonly string[]]>([
    ['RSA', () => testKey('RS256').privateKey, ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
    ['RSA-PSS without parameters', () => rsaPss(), ['PS256', 'PS384', 'PS512']],
    ['RSA-PSS bound to SHA-384', () => rsaPss('sha384'), ['PS384']],
    ['P-256', () => testKey('ES256').privateKey, ['ES256']],
    ['P-384', () => testKey('ES384').privateKey, ['ES384']],
    ['P-521', () => testKey('ES512').privateKey, ['ES512']],
    ['Ed25519', () => testKey('EdDSA').privateKey, ['EdDSA', 'Ed25519']],
    ['Ed448', () => generateKeyPairSync('ed448').publicKey, []],
    ['a secp256k1 key', () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey, []],
    ['X25519', () => generateKeyPairSync('x25519').publicKey, []],
  ])(
    'a key of type %s can verify exactly the algorithms of its type, curve and parameters',
    (_type, make, expected) => {
      const key = make();
      expect(ALGORITHMS.filter((algorithm) => isCompatible(key, algorithm)).sort()).toEqual([...expected].sort());
    },
  );
});
