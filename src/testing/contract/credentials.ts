import { createHmac, createPublicKey } from 'node:crypto';
import type { Reason } from 'tillgate';
import type { Alternatives } from '../openapi/document';
import type { HttpTestIssuer } from '../issuer/http-issuer';
import { encode, testKey } from '../issuer/test-token';
import type { Algorithm, TestKey, TestToken } from '../issuer/test-token';
import type { ApiRequest, ExpectedRefusal } from './responses';

/** The part of a test issuer that contract cases need. */
export interface TokenSource {
  /** Signs a token (RFC 9068), a good one by default. */
  token(this: void, token?: TestToken): string;
  /** With these two a removed key is tried. `rotate` returns the id of a new key that signs from now on. */
  rotate?(this: void): string;
  removeKey?(this: void, keyId?: string): void;
}

/** How a request carries its token. */
export interface TokenTransport {
  readonly headers?: ApiRequest['headers'];
  /** Added to the query. */
  readonly query?: string;
  /** Describes the token: `a token without scopes`. */
  readonly caller?: string | undefined;
}

/** One way to send a bad token, or none: every gate refuses it. */
export interface Attack {
  /** `refuses ...` */
  readonly name: string;
  readonly accepted: readonly ExpectedRefusal[];
  /** How the token differs from a good one with sufficient scopes. */
  readonly token?: (good: GoodClaims) => TestToken;
  /** Makes the token of another issuer from a good one. */
  readonly forge?: (good: string, by: HttpTestIssuer) => string;
  readonly send: (token: string) => TokenTransport;
  /**
   * `every operation`, because a route may lack its gate; else once per gate. `RFC 6750`: only gates whose refusals follow
   * it must refuse it; `Tillgate`: only Tillgate's.
   */
  readonly on?: 'every operation' | 'RFC 6750' | 'Tillgate';
  /** Its token supersedes the earlier ones of its client. */
  readonly supersedes?: boolean;
}

/** What a good token says, from which bad ones are made. */
interface GoodClaims {
  readonly iss: string;
  readonly aud: string;
  /** In seconds. */
  readonly iat: number;
}

/** What a good token of an issuer says now. */
export function claimsOf(issuer: TokenSource): GoodClaims {
  const { iss, aud, iat } = decode(issuer.token().split('.')[1]) as unknown as GoodClaims;
  return { iss, aud: String([aud].flat()[0]), iat };
}

/** A header, or claims. */
function decode(part = ''): Header {
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Header;
}

const ELSEWHERE = 'elsewhere.example';
const SUPERSEDED = 'contract-cases-superseded';
const FOREIGN: TestToken = { foreignKey: true };

const NO_TOKEN: ExpectedRefusal = { status: 401, codes: ['missing_token'] };
const REPEATED: ExpectedRefusal = { status: 400, error: 'invalid_request', codes: ['malformed_authorization'] };
const TOKEN_IN_QUERY: ExpectedRefusal = { status: 400, error: 'invalid_request', codes: ['token_in_query'] };

/** Wider than the tolerance of any clock. */
const LATE_SECONDS = 90;
const WRONG_ISSUER: readonly Reason[] = ['wrong_issuer', 'invalid_claims'];
const NOT_YET: readonly Reason[] = ['not_yet_valid', 'invalid_claims'];
const WRONG_AUDIENCE: readonly Reason[] = ['wrong_audience', 'invalid_claims'];

/** Claims that a gate checks, each absent, empty, in another form, and just outside of what is right. */
type Claims = (good: GoodClaims) => Readonly<Record<string, unknown>>;
const CLAIMS: readonly (readonly [what: string, codes: readonly Reason[], claims: Claims])[] = [
  ['a token of an issuer whose name begins like its own', WRONG_ISSUER, ({ iss }) => ({ iss: `${iss}.x` })],
  ['a token of an issuer with a path', WRONG_ISSUER, ({ iss }) => ({ iss: `${iss}/other` })],
  ['a token of an issuer whose name its own begins with', WRONG_ISSUER, ({ iss }) => ({ iss: iss.slice(0, -1) })],
  ['a token for an audience that begins like its own', WRONG_AUDIENCE, ({ aud }) => ({ aud: `${aud}.x` })],
  ['a token for an audience that its own begins with', WRONG_AUDIENCE, ({ aud }) => ({ aud: aud.slice(0, -1) })],
  ['a token without an issuer', WRONG_ISSUER, () => ({ iss: undefined })],
  ['a token with an empty issuer', WRONG_ISSUER, () => ({ iss: '' })],
  ['a token with a list of issuers', WRONG_ISSUER, ({ iss }) => ({ iss: [iss] })],
  ['a token without an audience', WRONG_AUDIENCE, () => ({ aud: undefined })],
  ['a token with an empty list of audiences', WRONG_AUDIENCE, () => ({ aud: [] })],
  ['a token with an object for its audience', WRONG_AUDIENCE, ({ aud }) => ({ aud: { [aud]: true } })],
  ['a token for several other audiences', WRONG_AUDIENCE, ({ aud }) => ({ aud: [`${aud}/`, `${aud}.x`] })],
  ['a token that expired in another unit', ['expired', 'invalid_claims'], () => ({ exp: 1 })],
  ['a token that has just expired', ['expired'], ({ iat }) => ({ iat: iat - 600, exp: iat - LATE_SECONDS })],
  ['a token that is valid soon', ['not_yet_valid'], ({ iat }) => ({ nbf: iat + LATE_SECONDS })],
  ['a token that expired before there was time', ['expired', 'invalid_claims'], () => ({ exp: -1 })],
  ['a token that has expired by a text', ['expired', 'invalid_claims'], ({ iat }) => ({ exp: String(iat - 600) })],
  ['a token that is valid soon by a text', NOT_YET, ({ iat }) => ({ nbf: String(iat + 600) })],
];

/** Headers of tokens that are signed with a foreign key. */
const HEADERS: readonly (readonly [what: string, codes: readonly Reason[], header: TestToken['header']])[] = [
  ['alg none in other letters', ['algorithm_not_allowed', 'malformed_token'], { alg: 'nOnE' }],
  ['a token signed with a foreign key of an unknown id', ['unknown_key', 'bad_signature'], { kid: 'contract-cases' }],
  ['a token signed with a foreign key, without a key id', ['bad_signature', 'unknown_key'], { kid: undefined }],
];

/** All attacks, in the order in which a gate checks for them. */
export const ATTACKS: readonly Attack[] = [
  { name: 'a request without a token', accepted: [NO_TOKEN], send: () => ({}), on: 'every operation' },
  ofRfc6750('two Authorization headers', [REPEATED], (token) => ({
    headers: { authorization: [`Bearer ${token}`, `Bearer ${token}`] },
  })),
  ofRfc6750('a token in the header and in the query', [TOKEN_IN_QUERY], (token) => ({
    ...bearer(token),
    query: `access_token=${token}`,
  })),
  // An API may ignore the query: then the request has no token (RFC 9700 section 4.3.2).
  ofRfc6750('a token in the query', [TOKEN_IN_QUERY, NO_TOKEN], (token) => ({ query: `access_token=${token}` })),
  { ...badToken('a malformed token', ['malformed_token']), send: () => bearer('not-a-token') },
  // A gate may check first that there is a signature.
  badToken('an unsigned token (alg none)', ['algorithm_not_allowed', 'malformed_token'], () => ({ algorithm: 'none' })),
  badToken('a token signed with the public key (HS256)', ['algorithm_not_allowed'], () => ({ algorithm: 'HS256' })),
  { ...badToken('a token signed with a foreign key', ['bad_signature'], () => FOREIGN), on: 'every operation' },
  badToken('a token of another issuer', ['wrong_issuer'], () => ({ issuer: `https://${ELSEWHERE}` })),
  badToken('a token for another audience', ['wrong_audience'], () => ({ audience: `https://api.${ELSEWHERE}` })),
  badToken('an expired token', ['expired'], () => ({ expired: true })),
  // A client of its own: all of its earlier tokens are superseded.
  { ...ofTillgate('a superseded token', 'superseded', { superseded: true, clientId: SUPERSEDED }), supersedes: true },
  ...CLAIMS.map(([what, codes, claims]) => badToken(what, codes, (good) => ({ claims: claims(good) }))),
  badToken('a token that is not valid yet', ['not_yet_valid'], () => ({ notYetValid: true })),
  ofTillgate('a token that never expires', 'invalid_claims', { claims: { exp: undefined } }),
  ofTillgate('a token with an unknown critical header', 'unsupported_critical_header', {
    header: { crit: ['x-unknown'], 'x-unknown': true },
  }),
  ofTillgate('a token of another type', 'wrong_type', { header: { typ: 'dpop+jwt' } }),
  ...HEADERS.map(([what, codes, header]) => badToken(what, codes, () => ({ ...FOREIGN, header }))),
  resigned('a token that brings its own key', ({ jwk, sign }, header) => [
    { ...header, jwk: { ...jwk, kid: header['kid'] } },
    sign,
  ]),
  resigned('a token that brings its own certificate', (key, header) => [
    { ...header, x5c: [certificateOf(key)] },
    key.sign,
  ]),
  namingKeys('a token that names the URL of its keys'),
  namingKeys('a token that names the URL of its keys, without a key id', { kid: undefined }),
  // RFC 9110 section 11.1: a scheme is compared without regard to its case.
  ...['bearer', 'BEARER'].map((scheme) => ({
    ...badToken(
      `a token signed with a foreign key, after "${scheme}"`,
      ['bad_signature', 'malformed_token'],
      () => FOREIGN,
    ),
    send: (token: string) => ({ headers: { authorization: `${scheme} ${token}` } }),
  })),
  ...['null', '[]', 'no JSON'].map((payload) =>
    changedToken(`a token whose payload is ${payload}`, ([head = '', , signature = '']) =>
      [head, Buffer.from(payload).toString('base64url'), signature].join('.'),
    ),
  ),
  resigned('a token with zeros for its signature', (_key, header) => [header, () => Buffer.alloc(64)]),
  ...['', 'secret', 'changeme', 'your-256-bit-secret'].map((secret) =>
    resigned(`a token signed with the secret "${secret}"`, hmacWith(secret)),
  ),
  resigned('a token whose key id is a path', hmacWith('', { kid: '../../../../../dev/null' })),
  changedToken('a token without its signature', ([head = '', payload = '']) => `${head}.${payload}.`),
  changedToken('a token with half of its signature', ([head = '', payload = '', signature = '']) =>
    [head, payload, signature.slice(0, signature.length / 2)].join('.'),
  ),
  changedToken('a token whose claims were changed', ([head = '', payload = '', signature = '']) =>
    [head, encode({ ...decode(payload), jti: 'changed' }), signature].join('.'),
  ),
];

/** A token where it belongs (RFC 6750 section 2.1). */
export function bearer(token: string): TokenTransport {
  return { headers: { authorization: `Bearer ${token}` } };
}

/** The token that a request carries. */
export function tokenOf({ headers }: TokenTransport): string {
  return String(headers?.['authorization']).replace('Bearer ', '');
}

function badToken(name: string, codes: readonly Reason[], token: Attack['token'] = () => ({})): Attack {
  return { name, accepted: [{ status: 401, error: 'invalid_token', codes }], token, send: bearer };
}

function ofRfc6750(name: string, accepted: Attack['accepted'], send: Attack['send']): Attack {
  return { name, accepted, send, on: 'RFC 6750' };
}

function ofTillgate(name: string, code: Reason, token: TestToken): Attack {
  return { ...badToken(name, [code], () => token), on: 'Tillgate' };
}

/** A good token that was changed after it had been signed. */
function changedToken(name: string, change: (parts: readonly string[]) => string): Attack {
  const changed = badToken(name, ['bad_signature', 'malformed_token']);
  return { ...changed, send: (token) => bearer(change(token.split('.'))) };
}

type Header = Readonly<Record<string, unknown>>;
type Signing = readonly [header: Header, sign: (input: string) => Buffer];

const ownKeys = new Map<unknown, TestKey>();

/** The claims of a good token under another header, signed by somebody else. */
function resigned(name: string, how: (own: TestKey, header: Header) => Signing): Attack {
  const change = ([head = '', payload = '']: readonly string[]): string => {
    const good = decode(head);
    const own = ownKeys.get(good['alg']) ?? testKey(good['alg'] as Algorithm);
    ownKeys.set(good['alg'], own);
    const [header, sign] = how(own, good);
    const input = `${encode(header)}.${payload}`;
    return `${input}.${sign(input).toString('base64url')}`;
  };
  const forged = badToken(name, ['bad_signature', 'malformed_token', 'algorithm_not_allowed']);
  return { ...forged, send: (token) => bearer(change(token.split('.'))) };
}

/** RFC 7515 sections 4.1.2 and 4.1.5: a gate that reads keys from such a URL trusts any signer. */
function namingKeys(name: string, others: Header = {}): Attack {
  const forge: Attack['forge'] = (good, by) => {
    const [header, claims] = good.split('.', 2).map(decode) as [Header, Header];
    // A gate may only look whether the URL contains that of its issuer.
    const jku = `${by.jwksUri}?${String(claims['iss'])}`;
    return by.token({ claims, header: { typ: undefined, ...header, jku, x5u: jku, ...others } });
  };
  return { ...badToken(name, ['bad_signature', 'unknown_key', 'malformed_token']), forge };
}

/** A certificate of a key by itself (RFC 5280 section 4.1), valid until 2049; its signature is not that of a key. */
function certificateOf({ jwk }: TestKey): string {
  const der = (tag: number, ...parts: readonly Buffer[]): Buffer => {
    const body = Buffer.concat(parts);
    const length = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 255];
    return Buffer.concat([Buffer.from([tag, ...length]), body]);
  };
  const hex = (text: string): Buffer => Buffer.from(text, 'hex');
  const algorithm = der(0x30, hex('06082a8648ce3d040302')); // ecdsa-with-SHA256
  const commonName = der(0x30, hex('0603550403'), der(0x0c, Buffer.from('contract-cases')));
  const name = der(0x30, der(0x31, commonName));
  const times = ['260101000000Z', '491231235959Z'].map((time) => der(0x17, Buffer.from(time)));
  const key = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'der' });
  const body = der(0x30, hex('020101'), algorithm, name, der(0x30, ...times), name, key);
  return der(0x30, body, algorithm, der(0x03, hex('003006020101020101'))).toString('base64');
}

function hmacWith(secret: string, others: Header = {}) {
  return (_own: TestKey, header: Header): Signing => [
    { ...header, ...others, alg: 'HS256' },
    (input) => createHmac('sha256', secret).update(input).digest(),
  ];
}

/** The scopes of a token, with a description of it. */
interface ScopeSet {
  readonly name: string;
  readonly scopes: readonly string[];
}

/** Limits the combinations of scopes that are left out, one of each alternative. */
const MAX_COMBINATIONS = 24;
/** Limits the names in one token: a header has 8 KB. */
const MAX_SIMILAR = 120;

/** The smallest sufficient sets: each alternative of an operation. */
export function sufficientSets(alternatives: Alternatives): readonly ScopeSet[] {
  const nameOf = (scopes: readonly string[]): string =>
    scopes.length === 0 ? 'a token without scopes' : `a token with only ${scopes.join(' and ')}`;
  return withoutRepeats(alternatives.map((scopes) => ({ name: nameOf(scopes), scopes })));
}

/** Insufficient: no scope, alternatives without a scope, all scopes but one of each, and names that are only similar. */
export function insufficientSets(alternatives: Alternatives, declared: readonly string[]): readonly ScopeSet[] {
  const isSufficient = ({ scopes }: ScopeSet): boolean =>
    alternatives.some((all) => all.every((one) => scopes.includes(one)));
  const required = [...new Set(alternatives.flat())];
  const known = [...new Set([...declared, ...required])];
  const similar = [...new Set(required.flatMap(similarTo))].slice(0, MAX_SIMILAR);
  const sets: readonly ScopeSet[] = [
    { name: 'a token without scopes', scopes: [] },
    ...alternatives.flatMap((scopes) =>
      scopes.map((missing) => {
        const left = scopes.filter((scope) => scope !== missing);
        return { name: `a token with ${left.join(' and ')}, without ${missing}`, scopes: left };
      }),
    ),
    ...combinationsLeftOut(alternatives).map((missing) => ({
      name: `a token with every scope except ${missing.join(' and ')}`,
      scopes: known.filter((scope) => !missing.includes(scope)),
    })),
    {
      name: `a token with names similar to ${required.join(' and ')}`,
      scopes: similar.filter((scope) => scope !== '' && !required.includes(scope)),
    },
  ];
  return withoutRepeats(sets.filter((set) => !isSufficient(set)));
}

/** Other names that a comparison may take for a scope: its beginning, its end, its case, separators, singular and plural. */
function similarTo(scope: string): readonly string[] {
  const parts = scope.split(/[:._/-]/);
  const joined = [':', '.', '_', '-', '/', ''].map((separator) => parts.join(separator));
  const numbered = parts.map((part, at) =>
    parts.with(at, part.endsWith('s') ? part.slice(0, -1) : `${part}s`).join(':'),
  );
  const cases = [scope.toUpperCase(), scope.toLowerCase(), scope.charAt(0).toUpperCase() + scope.slice(1)];
  const longer = ['x', ':x', '.x', ':'].map((end) => scope + end);
  return [...longer, `x${scope}`, scope.slice(0, -1), scope.slice(1), ...cases, ...joined, ...numbered];
}

/** Every way to leave out one scope of each alternative; the scopes that remain are never sufficient. */
function combinationsLeftOut(alternatives: Alternatives): Alternatives {
  let combinations: Alternatives = [[]];
  for (const scopes of alternatives) {
    const extended = combinations.flatMap((left) =>
      scopes.some((scope) => left.includes(scope)) ? [left] : scopes.map((scope) => [...left, scope]),
    );
    combinations = extended.slice(0, MAX_COMBINATIONS);
  }
  return combinations.filter((left) => left.length > 0);
}

function withoutRepeats(sets: readonly ScopeSet[]): readonly ScopeSet[] {
  const keys = sets.map(({ scopes }) => [...scopes].sort().join(' '));
  return sets.filter((_set, index) => keys.indexOf(keys[index] as string) === index);
}
