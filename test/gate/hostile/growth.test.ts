import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe as shown } from '../../../src/gate/core/words';
import { dpop } from '../../../src/gate/possession';
import { bearerToken } from '../../../src/gate/token/bearer';
import { isJwsShaped, parseToken } from '../../../src/gate/token/jws';
import { parseJson } from '../../../src/gate/net/strict-json';
import { amount } from '../../support/amount';
import { BASE_URL, boundToken, proof } from '../../support/dpop';
import { gateApp } from '../../support/gate-app';
import { fakeEndpoint, ENDPOINT } from '../../support/introspection';
import { AUDIENCE, base64url, ISSUER, token } from '../../support/issuer';
import { jwks, newKey, testKey } from '../../support/keys';
import { listFiles, nodesOf } from '../../repository/sources';

/*
 * Work before the signature grows with the length of what a caller sends, and no faster: whoever sends the text chooses it.
 * The inputs are made from a grammar, so that the test knows no weakness by name.
 */

const SRC = join(__dirname, '../../../src/gate');
const [SMALL, MEDIUM, LARGE] = [4_000, 8_000, 16_000] as const;

/** The texts in the sources that read what callers send: each may be what a parser looks for. */
const LITERALS = [
  ...['token', 'net', 'core'].flatMap((folder) => listFiles(join(SRC, folder))),
  join(SRC, 'possession/dpop.ts'),
]
  .flatMap((path) => nodesOf(ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest)))
  .flatMap((node) => (ts.isStringLiteralLike(node) ? [node.text] : []))
  .filter((text) => text !== '' && text.length <= 12 && !/^\.{0,2}\//.test(text))
  .filter((_text, place) => place % amount(12, 1) === 0);

const DELIMITERS = [...'.,;:"\'\\/@?&=%+*-_~<>(){}[]#! \t\n\0\u00e9\u0301\u202e\ud800'];
const ESCAPES = ['\\"', '\\\\', '\\u0061', '\\ud800', '%41', '%2e', 'xn--', 'eyJ', '/..', '//', '=,', ', ', 'a'];
const JSON_PIECES = ['{"a":', '[],', '{},', '"":', '"a":1,', '"\\u0061":1,', '"\\\\":1,', '1e9,'];
const WORD = 'e30e30e30e30e30';

/** A character that no other place of a text has. */
const distinct = (place: number): string => String.fromCodePoint(0x4e00 + (place % 20_000));
/** Members with names that differ, with and without an escape. */
const member = (place: number): string => `"${place}":1,`;
const escapedMember = (place: number): string => `"\\u0061${place}":1,`;

type Piece = string | ((place: number) => string);

/** A piece over and over, up to a length in bytes. */
function run(piece: Piece, length: number): string {
  if (typeof piece === 'string') return piece.repeat(Math.floor(length / Buffer.byteLength(piece)));
  const pieces: string[] = [];
  for (let bytes = 0, place = 0; bytes < length; place++) {
    const next = piece(place);
    pieces.push(next);
    bytes += Buffer.byteLength(next);
  }
  return pieces.join('');
}

/** What a text is made of, by name; each is made for a length. */
const INPUTS: ReadonlyMap<string, (length: number) => string> = new Map(
  [
    ...[...DELIMITERS, ...ESCAPES, ...JSON_PIECES, ...LITERALS].map((piece) => [JSON.stringify(piece), piece] as const),
    ...DELIMITERS.map((piece) => [`words and ${JSON.stringify(piece)}`, WORD + piece] as const),
    ...([distinct, member, escapedMember] as const).map((piece) => [piece.name, piece] as const),
  ].flatMap(([name, piece]) => [
    [name, (length: number) => run(piece, length)],
    [`a URL of ${name}`, (length: number) => `https://${run(piece, length)}`],
    [
      `${name}, after members with escapes`,
      (length: number) => run(escapedMember, length / 2) + run(piece, length / 2),
    ],
  ]),
);

/** Where a text stands in JSON: as it is, as a string, as a name, and after a name with an escape. */
const DOCUMENTS: Readonly<Record<string, (text: string) => string>> = {
  document: (text) => text,
  members: (text) => `{${text}"z":1}`,
  array: (text) => `[${text}1]`,
  string: (text) => JSON.stringify({ a: text }),
  name: (text) => JSON.stringify({ [text]: text }),
  'string after a name with an escape': (text) => `{"\\u0061":1,"b":${JSON.stringify(text)}}`,
};

/** As much of a text as a token of this length holds in base64url. */
const inToken = (text: string): string => text.slice(0, text.length * 0.7);
const SIGNATURE = 'A'.repeat(86);
const HEADER = base64url(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid: testKey().kid }));
const STRANGER = newKey('ES256', 'unknown');

const ask = (headers: Record<string, string>, more: object = {}) => ({
  method: 'GET',
  url: '/v1/orders',
  headers,
  rawHeaders: Object.entries(headers).flat(),
  ...more,
});
const bearer = (raw: string) => ask({ authorization: `Bearer ${raw}` });

/** Gates whose log is read, as that of the console is: with several issuers, with opaque tokens, with DPoP. */
function gates() {
  const trusted = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()) };
  const { fetch } = fakeEndpoint();
  const several = gateApp({ issuers: [trusted, { ...trusted, issuer: 'https://other.test' }] });
  const opaque = gateApp({ fetch, keys: trusted.keys, opaque: { url: ENDPOINT, clientId: 'api', clientSecret: 's' } });
  const bound = gateApp({ possession: [dpop({ baseUrl: BASE_URL })] });
  const decide = async ({ gate }: ReturnType<typeof gateApp>, req: object): Promise<unknown> =>
    gate.verify(req as never).catch((error: unknown) => error);
  return { several, opaque, bound, decide };
}

const { several, opaque, bound, decide } = gates();
const ACCESS = boundToken();

/** Everything that reads a text before a signature is good, and what describes it. */
type Reader = (text: string) => () => unknown;
const READERS: Readonly<Record<string, Reader>> = {
  'describe()': (text) => () => shown(text),
  'bearerToken() of a header': (text) => () => bearerToken(ask({ authorization: text })),
  'bearerToken() of credentials': (text) => () => bearerToken(bearer(text)),
  'bearerToken() of a query': (text) => () => bearerToken(ask({}, { url: `/v1/orders?${text}` })),
  'bearerToken() of a form': (text) => () =>
    bearerToken(ask({ 'content-type': 'application/x-www-form-urlencoded' }, { body: text })),
  'isJwsShaped()': (text) => () => isJwsShaped(text),
  'parseToken()': (text) => () => parseToken(text),
  'the issuer of a token, where there are several': (text) => {
    const raw = token({ key: STRANGER, claims: { iss: inToken(text) } });
    return () => decide(several, bearer(raw));
  },
  'the audience of a token': (text) => {
    const raw = token({ claims: { aud: inToken(text) } });
    return () => decide(bound, bearer(raw));
  },
  'the scopes of a token': (text) => {
    const raw = token({ claims: { scope: inToken(text), iss: 'other' } });
    return () => decide(bound, bearer(raw));
  },
  'the key id of a token': (text) => {
    const raw = token({ key: STRANGER, header: { kid: inToken(text) } });
    return () => decide(bound, bearer(raw));
  },
  'the type of a token': (text) => {
    const raw = token({ key: STRANGER, header: { typ: inToken(text) } });
    return () => decide(bound, bearer(raw));
  },
  'a token of any kind': (text) => () => decide(opaque, bearer(text)),
  'the path of a refused request': (text) => () => decide(bound, ask({}, { url: `/${text}`, originalUrl: `/${text}` })),
  'a DPoP proof': (text) => () => decide(bound, ask({ authorization: `DPoP ${ACCESS}`, dpop: text })),
  'the key of a DPoP proof': (text) => {
    const sent = proof({ header: { jwk: { kty: 'EC', crv: inToken(text) } }, sign: () => Buffer.alloc(64) });
    return () => decide(bound, ask({ authorization: `DPoP ${ACCESS}`, dpop: sent }));
  },
  'the URL of a DPoP proof': (text) => {
    const sent = proof({ url: inToken(text) });
    return () => decide(bound, ask({ authorization: `DPoP ${ACCESS}`, dpop: sent }));
  },
};

/** The same for each place in a document. */
for (const [place, document] of Object.entries(DOCUMENTS)) {
  Object.assign(READERS, {
    [`parseJson(): ${place}`]: (text: string) => () => parseJson(Buffer.from(document(text))),
    [`a payload: ${place}`]: (text: string) => {
      const raw = `${HEADER}.${base64url(document(inToken(text)))}.${SIGNATURE}`;
      return () => decide(several, bearer(raw));
    },
  });
}

/** CPU time in ms, which other processes do not add to; the best of some runs. */
async function cost(work: () => unknown, runs: number): Promise<number> {
  let best = Infinity;
  for (let times = 0; times < runs; times++) {
    const before = process.cpuUsage();
    try {
      await work();
    } catch {
      // Most texts are refused.
    }
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / 1000);
  }
  return best;
}

/** Below this a cost is not compared: 16 KB of such a text, a thousand times a second, are half of a process. */
const NEGLIGIBLE_MS = 1.5;
/** What a request of 15 KB may cost. */
const LIMIT_MS = 10;
/** Twice, and what a measurement is wrong by. */
const MAX_GROWTH = 2.5;

/** The costs of a text of three lengths where they grow faster than the text. What looks so is measured again. */
async function growthOf(read: Reader, text: (length: number) => string): Promise<string | undefined> {
  const measure = (length: number, runs: number): Promise<number> => cost(read(text(length)), runs);
  if ((await measure(LARGE, 1)) < NEGLIGIBLE_MS) return undefined;
  let costs: number[] = [];
  for (const runs of [5, 20, 60, 60]) {
    costs = [await measure(SMALL, runs), await measure(MEDIUM, runs), await measure(LARGE, runs)];
    const [small = 0, medium = 0, large = 0] = costs;
    const isNegligible = large < NEGLIGIBLE_MS;
    const grows = large > MAX_GROWTH * medium && medium > MAX_GROWTH * small;
    if (isNegligible || !(grows || large > LIMIT_MS)) return undefined;
  }
  return costs.map((ms) => ms.toFixed(1)).join(', ');
}

describe('work before the signature', () => {
  /** In `npm test` each reader gets every other text, the next one those that this one does not get. */
  const textsOf = (what: string): typeof INPUTS =>
    new Map([...INPUTS].filter((_text, place) => (place + Object.keys(READERS).indexOf(what)) % amount(2, 1) === 0));

  it.each(Object.entries(READERS))('grows with the length at most: %s', async (what, read) => {
    const growing: string[] = [];
    for (const [name, text] of textsOf(what)) {
      const growth = await growthOf(read, text);
      if (growth !== undefined) growing.push(`${name}: ${growth} ms`);
    }
    expect(growing).toEqual([]);
  });

  it('is no more for a token with 990 parts than for one with a few: only the first ones can be header and payload', async () => {
    const raw = Array.from({ length: 990 }, () => WORD).join('.');
    expect(await cost(() => isJwsShaped(raw), 20)).toBeLessThan(0.5);
  });
});
