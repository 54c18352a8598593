import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { AUDIENCE, goodClaims, ISSUER, NOW, NOW_MS, token } from '../../support/issuer';
import { ED, ES, GOOD, RS, signParts } from '../../gate/hostile/support/forge';
import { leaks } from '../../gate/hostile/support/leaks';
import { openTarget } from '../../gate/hostile/support/target';
import { anyInput } from './campaign';
import type { FuzzTarget } from './campaign';
import { codeOf, checkResponse } from './check-response';
import { rawClient } from './keep-alive';
import { mutated, oddValue, withOddMembers } from './mutations';

/** A token, and whether it may be accepted, by rules that are written independently of src. */
interface FuzzedToken {
  readonly token: string;
  readonly right: boolean;
  /** Right by its values, and still to be refused where its JSON is not strict: the rules here are read by JSON.parse. */
  readonly loose?: true;
}

const OTHERS = [token({ key: RS }), token({ key: ED }), token({ claims: { scope: '' } })];
/** Accepted as they are: a mutation may lead to any of these, and only these. */
const GOOD_TOKENS: readonly string[] = [GOOD, ...OTHERS.slice(0, 2)];
const ALPHABET = [...'ABYZabyz0189-_.=+/~'];

const TEXTS: Arbitrary<FuzzedToken> = fc
  .oneof(
    mutated(GOOD, ALPHABET, OTHERS),
    fc.constantFrom(...OTHERS).chain((other) => mutated(other, ALPHABET, [GOOD])),
  )
  .map((text) => ({ token: text, right: GOOD_TOKENS.includes(text) }));

const HEADER = { typ: 'at+jwt', alg: 'ES256', kid: ES.kid };
const HEADER_NAMES = ['typ', 'alg', 'kid', 'crit', 'b64', 'jwk', 'jku', 'x5c', 'zip', 'cty', '__proto__'];
const HEADER_VALUES = fc.oneof(
  oddValue,
  fc.constantFrom<unknown>(
    ...['none', 'HS256', 'RS256', 'ES384', 'EdDSA', 'ES256', 'AT+JWT', 'JWT', 'application/at+jwt', RS.kid],
    ...[['exp'], ES.jwk],
  ),
);
const CLAIM_NAMES = [...Object.keys(goodClaims()), 'nbf', 'scp', 'cnf', '__proto__', 'constructor'];
const CLAIM_VALUES = fc.oneof(
  oddValue,
  fc.integer({ min: -100_000, max: 100_000 }).map((offset) => NOW + offset),
  fc.integer({ min: -100_000, max: 100_000 }).map((offset) => NOW_MS + offset),
  fc.constantFrom<unknown>(ISSUER, AUDIENCE, [AUDIENCE], `${ISSUER}/`, 'orders:read', ['orders:read'], 'orders:read '),
  fc.string({ maxLength: 8 }),
);

/** Header and claims changed member by member, then signed with the right key. */
const SIGNED: Arbitrary<FuzzedToken> = fc
  .tuple(
    fc.oneof(fc.constant<Record<string, unknown>>(HEADER), withOddMembers(HEADER, HEADER_NAMES, HEADER_VALUES)),
    withOddMembers({ ...goodClaims(), client_id: 'fuzzed' }, CLAIM_NAMES, CLAIM_VALUES),
  )
  .map(([header, claims]) => {
    const [headerText, claimsText] = [JSON.stringify(header), JSON.stringify(claims)];
    const parts = [headerText, claimsText].map((text) => Buffer.from(text).toString('base64url')) as [string, string];
    return { token: signParts(...parts), right: isRight(JSON.parse(headerText), JSON.parse(claimsText)) };
  });

const JSON_PIECES = ['"', '{', '}', ',', ':', '\\', '1e400', '\u0000', '"exp":1,'];

/** The payload changed as text, then signed with the right key: usually not JSON any more. */
const REWRITTEN: Arbitrary<FuzzedToken> = mutated(JSON.stringify(goodClaims()), JSON_PIECES).map((payload) => {
  const parts = [JSON.stringify(HEADER), payload].map((text) => Buffer.from(text).toString('base64url'));
  return { token: signParts(...(parts as [string, string])), right: isRight(HEADER, parse(payload)), loose: true };
});

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Members = Record<string, unknown>;

function isRight(header: unknown, claims: unknown): boolean {
  return (
    isObject(header) &&
    isObject(claims) &&
    isRightHeader(header) &&
    areRightTimes(claims) &&
    areRightNames(claims) &&
    // Bound to a key whose possession is not proved.
    claims['cnf'] === undefined
  );
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isRightHeader({ alg, typ, kid, ...rest }: Members): boolean {
  const type = typeof typ === 'string' ? typ.toLowerCase() : '';
  return (
    alg === 'ES256' &&
    ['at+jwt', 'application/at+jwt'].includes(type) &&
    (kid === undefined || kid === ES.kid) &&
    !('crit' in rest || 'b64' in rest)
  );
}

function areRightTimes({ exp, iat, nbf }: Members): boolean {
  const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
  if (!isNumber(exp) || !isNumber(iat) || (nbf !== undefined && !isNumber(nbf))) return false;
  return exp > NOW - 10 && iat <= NOW + 10 && (nbf ?? 0) <= NOW + 10 && exp - iat <= 86_400;
}

function areRightNames({ iss, aud, sub, jti, client_id: clientId, scope, generation }: Members): boolean {
  const texts = [sub, jti, clientId].every((value) => typeof value === 'string') && clientId !== '';
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  const scopes: readonly unknown[] = typeof scope === 'string' ? scope.split(' ') : Array.isArray(scope) ? scope : [];
  const areTexts = (list: readonly unknown[]): boolean => list.every((value) => typeof value === 'string');
  const isGeneration =
    Number.isSafeInteger(generation) && Number(generation) >= 0 && Number(generation) <= NOW_MS + 10_000;
  return (
    texts &&
    iss === ISSUER &&
    areTexts(audiences) &&
    audiences.includes(AUDIENCE) &&
    areTexts(scopes) &&
    scopes.includes('orders:read') &&
    isGeneration
  );
}

/** Any token, at the running scaffold. */
export async function tokens(): Promise<FuzzTarget<unknown>> {
  const target = await openTarget();
  const client = rawClient(target.port);
  return anyInput<FuzzedToken>({
    inputs: fc.oneof(TEXTS, SIGNED, REWRITTEN),
    async check({ token: text, right, loose }) {
      target.lines.length = 0;
      const bytes = `GET /v1/orders HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer ${text}\r\n\r\n`;
      const response = await client.send(bytes);
      const status = checkResponse(response, right);
      // An earlier token with a higher generation supersedes this one: the only way to refuse a right token.
      const superseded = response && codeOf(response) === 'superseded';
      if (right && !loose && status !== 200 && !superseded) throw new Error(`a right token got ${status}`);
      const leaked = leaks(bytes, target.lines.join(''));
      if (leaked.length > 0) throw new Error(`in the log: ${leaked.join(' ')}`);
      return [status];
    },
    async close() {
      client.close();
      await target.close();
    },
  });
}
