import { challengeOf } from '../../../support/refusals';
import { AUDIENCE } from '../../../support/issuer';
import type { Reason } from '../../../../src/gate';
import type { Attack, Expected } from './attack';
import { leaks } from './leaks';
import { parseChallenge } from '../../../support/strict-challenge';
import type { Target } from './target';
import { exchange, SILENCE_MS } from './wire';
import type { Exchange, WireResponse } from './wire';

const NEXT = 'GET /livez HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n';
const METADATA = `${AUDIENCE}/.well-known/oauth-protected-resource`;

/** Runs one attack, with a good request after it on the same connection, and asserts everything that must hold. */
export async function runAttack({ input, expected }: Attack, target: Target): Promise<void> {
  target.reached.length = target.lines.length = target.connections.count = 0;
  const bytes = bytesOf(input);
  const silenceMs = expected.next === 'swallowed' ? SILENCE_MS : undefined;
  const result = await exchange(target.port, Buffer.from(bytes + NEXT, 'latin1'), silenceMs);
  await new Promise((resolve) => setImmediate(resolve));

  // One call of expect(): a thousand attacks make many.
  expect({
    ...outcome(result),
    reached: target.reached,
    polluted: Object.keys(Object.prototype),
    connections: target.connections.count,
    leaked: leaks(bytes, target.lines.join('')),
  }).toEqual({
    ...expectedOutcome(expected),
    reached: expected.reached ?? [],
    polluted: [],
    // Only the attacker's own: no key, URL or file that a token names was fetched.
    connections: 1,
    leaked: [],
  });
  const response = result.responses.find(({ status }) => status >= 200);
  if (response && !expected.byNode) expectResponse(response, target.exposeReasons ? expected : opaque(expected), bytes);
  expectLog(target.lines, expected);
}

function bytesOf(input: Attack['input']): string {
  if ('request' in input) return input.request;
  return `GET /v1/orders HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer ${input.token}\r\n\r\n`;
}

/** Statuses in their order and how the connection ended: a smuggled request would cause an additional response. */
function outcome({ responses, malformed, closed, error }: Exchange): object {
  return {
    statuses: responses.map(({ status }) => status),
    ...(malformed !== undefined && { malformed }),
    // A reset after a complete response: Node does not read the rest of a refused request.
    ...(error !== undefined && error !== 'ECONNRESET' && error !== 'EPIPE' && { error }),
    closed,
  };
}

function expectedOutcome({ status, next = 'served' }: Expected): object {
  const first = status === undefined ? [] : [status];
  const second = { served: [200], refused: [400], cut: [], swallowed: [] }[next];
  return { statuses: [...first, ...second], closed: next !== 'swallowed' };
}

/** In production every bad token gets the same response. */
function opaque(expected: Expected): Expected {
  return expected.error === 'invalid_token' ? { ...expected, code: 'invalid_token' } : expected;
}

const OPAQUE_CHALLENGE = `Bearer realm="api", error="invalid_token", error_description="The access token is not valid.", resource_metadata="${METADATA}"`;

function expectResponse(response: WireResponse, { status = 0, error, code, scopes }: Expected, bytes: string): void {
  const challenges = response.headers.get('www-authenticate') ?? [];
  if (error === undefined) {
    expect(challenges).toEqual([]);
  } else {
    const details = { resourceMetadata: METADATA, ...(scopes && { scopes }) };
    expect(challenges).toEqual([code === 'invalid_token' ? OPAQUE_CHALLENGE : challengeOf(code as Reason, details)]);
    expect(parseChallenge(challenges[0] ?? '').parameters.get('error') ?? null).toBe(error);
  }
  const [poweredBy, contentType, cacheControl] = ['x-powered-by', 'content-type', 'cache-control'].map((name) =>
    response.headers.get(name),
  );
  expect(poweredBy).toBeUndefined();
  if (code === undefined) return;
  const body: unknown = bytes.startsWith('HEAD ') ? { status, code } : JSON.parse(response.body);
  expect({ contentType, cacheControl, body }).toMatchObject({
    contentType: ['application/problem+json; charset=utf-8'],
    cacheControl: ['no-store'],
    body: { status, code },
  });
}

/** One line for the request and one for the good one after it; each a JSON object in printable ASCII. */
function expectLog(
  lines: readonly string[],
  { status, code, error, byParser, byNode, nextLogged, next = 'served' }: Expected,
): void {
  const text = lines.join('');
  expect(text).toMatch(/^[\x20-\x7e\n]*$/);
  const entries = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(entries.map((entry) => entry['status'])).toEqual([
    // The parser reads ahead of the app.
    ...(next === 'refused' ? [400] : []),
    ...(byNode ? [] : [status]),
    ...(next === 'served' || nextLogged ? [200] : []),
  ]);
  if (error !== undefined) expect(entries.map((entry) => entry['reason'])).toContain(code);
  if (byParser) expect(entries[0]?.['reason']).toBe('unreadable');
}
