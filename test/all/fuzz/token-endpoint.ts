import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listen } from '../../support/listen';
import { createAuthServer } from '../../../src/cli/auth-server';
import { anyCharacter } from '../../support/any-character';
import { recordingLogger } from '../../support/log';
import type { WireResponse } from '../../gate/hostile/support/wire';
import { anyInput } from './campaign';
import type { FuzzTarget } from './campaign';
import { rawClient } from './keep-alive';
import { mutated } from './mutations';

/** A request to the token endpoint. */
interface TokenRequest {
  readonly body: string;
  /** Value of the Authorization header, if there is one. */
  readonly authorization?: string;
}

const SCOPE = 'orders:read orders:write';
const FORM = 'application/x-www-form-urlencoded';
/** RFC 6749 section 5.2. */
const ERRORS = ['invalid_request', 'invalid_client', 'unauthorized_client', 'unsupported_grant_type', 'invalid_scope'];
const PIECES = [
  ...['&', '=', '+', '%', '%00', '%zz', '%c0%af', '&scope=', '&grant_type=', '&client_secret=', '__proto__=1&'],
  ...[':', ' ', 'ä', '🔑'],
];

/** Bodies with credentials in them. */
function bodies(secret: string): Arbitrary<TokenRequest> {
  const good = `grant_type=client_credentials&client_id=pos-17&client_secret=${secret}&scope=orders%3Aread`;
  const names = ['grant_type', 'client_id', 'client_secret', 'scope', 'resource', 'audience', '__proto__'];
  const values = fc.oneof(
    fc.constantFrom(
      ...['client_credentials', 'password', 'pos-17', secret, 'orders:read', 'orders:read orders:write', 'admin'],
      ...[''],
    ),
    fc.string({ maxLength: 12 }),
    fc.string({ unit: anyCharacter, maxLength: 12 }),
  );
  const made = fc
    .array(fc.tuple(fc.constantFrom(...names), values), { maxLength: 6 })
    .map((pairs) => pairs.map(([name, value]) => `${name}=${encode(value)}`).join('&'));
  const bytes = fc
    .array(fc.integer({ min: 0, max: 255 }), { maxLength: 60 })
    .map((list) => String.fromCharCode(...list));
  return fc.oneof(fc.constant(good), mutated(good, PIECES), made, bytes).map((body) => ({ body }));
}

/** Basic headers, with a body that is good for the rest. */
function basics(secret: string): Arbitrary<TokenRequest> {
  const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64');
  const pair = fc.oneof(
    mutated(`pos-17:${secret}`, PIECES),
    fc.tuple(fc.string({ maxLength: 10 }), fc.string({ maxLength: 10 })).map(([id, key]) => `${id}:${key}`),
    fc.constant(`pos-17:${secret}`),
  );
  const header = fc.oneof(
    pair.map((text) => `Basic ${base64(text)}`),
    mutated(`Basic ${base64(`pos-17:${secret}`)}`, PIECES),
    fc.base64String({ maxLength: 40 }).map((text) => `Basic ${text}`),
    fc.array(fc.integer({ min: 32, max: 255 }), { maxLength: 60 }).map((list) => String.fromCharCode(...list)),
  );
  const body = fc.constantFrom(
    'grant_type=client_credentials&scope=orders%3Aread',
    'grant_type=client_credentials&scope=orders%3Aread&client_id=pos-17',
    '',
  );
  // Node's parser refuses the others before the endpoint sees them: that is of the target of any header.
  return fc.record({ body, authorization: header.map((value) => value.replace(/[^\P{Cc}\t\x80-\x9f]/gu, '')) });
}

/** Well-formed if the text is. */
function encode(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    return '%ed%a0%80';
  }
}

/** Whether the request presents the secret in any accepted way: only then a token may be issued. */
function holdsSecret({ body, authorization = '' }: TokenRequest, secret: string): boolean {
  const decoded = body.replace(/%([0-9a-f]{2})/gi, (_match, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  const basic = Buffer.from(authorization.slice(6), 'base64').toString('latin1');
  return [decoded, basic, decodeURIComponentOr(basic)].some((text) => text.includes(secret));
}

function decodeURIComponentOr(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function judge(response: WireResponse | undefined, right: boolean): number | undefined {
  if (response === undefined) return undefined;
  const { status, headers } = response;
  if (status >= 500) throw new Error(`a ${status}`);
  if (headers.get('cache-control')?.[0] !== 'no-store') throw new Error(`a ${status} that may be stored`);
  const body = JSON.parse(response.body) as { access_token?: unknown; scope?: string; error?: string };
  // Refused by Node's parser.
  if (status !== 401 && headers.get('content-type')?.[0]?.startsWith('application/problem+json')) return status;
  if (status === 200) {
    const scopes = body.scope?.split(' ') ?? [];
    if (!right || typeof body.access_token !== 'string') throw new Error('a token without the secret');
    if (!scopes.every((scope) => SCOPE.split(' ').includes(scope))) throw new Error(`a token for ${body.scope}`);
    return status;
  }
  if (!ERRORS.includes(body.error ?? '')) throw new Error(`a ${status} with error ${body.error}`);
  const challenges = headers.get('www-authenticate') ?? [];
  if (challenges.length !== (status === 401 ? 1 : 0)) throw new Error(`${challenges.length} challenges in a ${status}`);
  return status;
}

/** Any body and any Basic header, at the embedded token server. */
export async function tokenEndpoint(): Promise<FuzzTarget<unknown>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tillgate-fuzz-'));
  const log = recordingLogger();
  const urls = { issuer: 'http://127.0.0.1:4000', audience: 'http://127.0.0.1:3000' };
  const auth = await createAuthServer({ ...urls, dataDir, rateLimit: false, logger: log });
  const { client_secret: secret } = await auth.register({ client_id: 'pos-17', scope: SCOPE });
  const server = await listen(auth.handler);
  const client = rawClient(server.port);

  return anyInput<TokenRequest>({
    inputs: fc.oneof(bodies(secret), basics(secret)),
    async check({ body, authorization }) {
      log.entries.length = 0;
      const text = Buffer.from(body).toString('latin1');
      const credentials = authorization === undefined ? '' : `Authorization: ${authorization}\r\n`;
      const head = `POST /connect/token HTTP/1.1\r\nHost: a\r\nContent-Type: ${FORM}\r\n${credentials}Content-Length: ${text.length}\r\n\r\n`;
      const response = await client.send(head + text);
      const status = judge(
        response,
        holdsSecret({ body: text, ...(authorization !== undefined && { authorization }) }, secret),
      );
      const output = JSON.stringify(log.entries) + (response?.body ?? '');
      if (output.includes(secret)) throw new Error('the secret is in the log or in the response');
      return [status];
    },
    async close() {
      client.close();
      await server.close();
      await auth.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  });
}
