import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import type { RequestListener } from 'node:http';
import { authenticate } from '../../../src/gate';
import type { Gate } from '../../../src/gate';
import { listen } from '../../support/listen';
import { AUDIENCE, ISSUER, NOW_MS } from '../../support/issuer';
import { recordingLogger } from '../../support/log';
import { ES, forged, GOOD, RS } from '../../gate/hostile/support/forge';
import { anyInput } from './campaign';
import type { FuzzTarget } from './campaign';
import { checkResponse } from './check-response';
import { rawClient } from './keep-alive';
import { mutated, oddValue, withOddMembers } from './mutations';

/** A response of an issuer. */
interface FuzzedDocument {
  readonly status: number;
  readonly body: string;
}

const JWKS_URI = `${ISSUER}/jwks`;
const FORGED = forged();
const PIECES = ['"', '{', '}', '[', ']', ',', ':', '\\', '\u0000', 'null', '1e400', '"d":"AA",', '"kty":"oct",'];
const STATUSES = fc.oneof(
  { weight: 9, arbitrary: fc.constant(200) },
  { weight: 1, arbitrary: fc.constantFrom(201, 203, 301, 404, 500) },
);
const RUBBISH = fc.oneof(
  fc.json(),
  fc.string({ maxLength: 60 }),
  fc.constantFrom('', '<html>', '[]', 'null', '{}', '\ufeff{}'),
);

const KEY_NAMES = ['kty', 'use', 'key_ops', 'alg', 'kid', 'crv', 'x', 'y', 'n', 'e', 'd', 'k', 'x5c', '__proto__'];
const KEY_VALUES = fc.oneof(
  oddValue,
  fc.constantFrom<unknown>(
    ...['RSA', 'EC', 'OKP', 'oct', 'enc', 'sig', 'ES256', 'none', 'P-256', 'P-384', 'Ed25519', 'AQAB', 'AQ'],
    ...[['verify'], ES.kid, RS.jwk['n']],
  ),
);
const ODD_KEY = fc.constantFrom(ES.jwk, RS.jwk).chain((jwk) => withOddMembers(jwk, KEY_NAMES, KEY_VALUES));
const KEYS: Arbitrary<unknown> = fc.array(fc.oneof(ODD_KEY, fc.constantFrom<unknown>(ES.jwk, RS.jwk), oddValue), {
  maxLength: 6,
});

const KEY_SETS: Arbitrary<string> = fc.oneof(
  KEYS.map((keys) => JSON.stringify({ keys })),
  mutated(JSON.stringify({ keys: [ES.jwk, RS.jwk] }), PIECES),
  RUBBISH,
);

const METADATA = { issuer: ISSUER, jwks_uri: JWKS_URI };
const METADATA_VALUES = fc.oneof(
  oddValue,
  fc.webUrl(),
  fc.constantFrom<unknown>(
    ...[`${ISSUER}/`, 'http://login.test/jwks', 'file:///etc/passwd', 'https://login.test/JWKS', [JWKS_URI]],
    ...['//login.test/jwks', 'data:,{}', JWKS_URI, ISSUER],
  ),
);

const DISCOVERIES: Arbitrary<string> = fc.oneof(
  withOddMembers(METADATA, ['issuer', 'jwks_uri', '__proto__'], METADATA_VALUES).map((document) =>
    JSON.stringify(document),
  ),
  mutated(JSON.stringify(METADATA), PIECES),
  RUBBISH,
);

const documents = (bodies: Arbitrary<string>): Arbitrary<FuzzedDocument> =>
  fc.record({ status: STATUSES, body: bodies });

/** Whether a key set contains the real key, compared by its bytes, not by their spelling. */
function hasTheKey({ status, body }: FuzzedDocument): boolean {
  const bytes = (value: unknown): string => Buffer.from(String(value), 'base64url').toString('hex');
  const isReal = (jwk: unknown): boolean => {
    const { x, y } = (jwk ?? {}) as Record<string, unknown>;
    return bytes(x) === bytes(ES.jwk['x']) && bytes(y) === bytes(ES.jwk['y']);
  };
  const keys = membersOf(body)['keys'];
  return status === 200 && Array.isArray(keys) && keys.some(isReal);
}

/** Whether metadata belongs to the issuer and names its key set. */
function leadsToTheKeys({ status, body }: FuzzedDocument): boolean {
  const { issuer, jwks_uri: uri } = membersOf(body);
  const leads = typeof uri === 'string' && URL.canParse(uri) && new URL(uri).href === JWKS_URI;
  return status === 200 && issuer === ISSUER && leads;
}

function membersOf(body: string): Readonly<Record<string, unknown>> {
  try {
    return (JSON.parse(body) ?? {}) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** Any key set at the configured URL. */
export function keySets(): Promise<FuzzTarget<unknown>> {
  return documentTarget(documents(KEY_SETS), hasTheKey, { jwksUri: JWKS_URI }, ({ status, body }) => () => ({
    status,
    body,
  }));
}

/** Any metadata; the key set that it should lead to is good. */
export function discoveryDocuments(): Promise<FuzzTarget<unknown>> {
  const keys = JSON.stringify({ keys: [ES.jwk] });
  return documentTarget(documents(DISCOVERIES), leadsToTheKeys, {}, ({ status, body }) => (url) => {
    if (url.includes('/.well-known/')) return { status, body };
    return url === JWKS_URI ? { status: 200, body: keys } : { status: 404, body: '' };
  });
}

/** Opens a new gate for each document, and sends it a good and a forged token. */
async function documentTarget(
  inputs: Arbitrary<FuzzedDocument>,
  mayAccept: (document: FuzzedDocument) => boolean,
  source: { readonly jwksUri?: string },
  responses: (document: FuzzedDocument) => (url: string) => FuzzedDocument,
): Promise<FuzzTarget<unknown>> {
  let gate: Gate | undefined;
  const listener: RequestListener = (req, res) => gate?.(req, res, () => res.end('reached'));
  const server = await listen(listener);
  const client = rawClient(server.port);
  const ask = (token: string) => client.send(`GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`);

  async function check(document: FuzzedDocument): Promise<readonly (number | undefined)[]> {
    const asked: string[] = [];
    gate = authenticate({
      ...source,
      issuer: ISSUER,
      audience: AUDIENCE,
      exposeReasons: true,
      clock: () => NOW_MS,
      logger: recordingLogger(),
      unguarded: 'allow',
      fetch(url) {
        asked.push(url);
        const { status, body } = responses(document)(url);
        return Promise.resolve(new Response(body, { status }));
      },
    });
    try {
      const statuses = [
        checkResponse(await ask(GOOD), mayAccept(document), true),
        checkResponse(await ask(FORGED), false, true),
      ];
      const plain = asked.filter((url) => !url.startsWith('https://'));
      if (plain.length > 0) throw new Error(`fetched ${plain.join(' ')}`);
      return statuses;
    } finally {
      await gate.close();
    }
  }

  return anyInput({
    inputs,
    check,
    async close() {
      client.close();
      await server.close();
    },
  });
}
