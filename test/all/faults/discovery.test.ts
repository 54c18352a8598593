import { gateApp } from '../../support/gate-app';
import type { GateApp } from '../../support/gate-app';
import { token } from '../../support/issuer';
import { keyServer } from '../../support/key-server';
import { jwks, testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';
import { eventually } from '../support/eventually';
import { endless, faultServer, respondWith, send, sized } from './fault-server';
import type { Fault } from './fault-server';

const [KEY, NEXT] = [testKey('ES256', 'a'), testKey('ES256', 'b')];
const startedMs = performance.now();
/** Time passes: it is the tests' own, not that of the machine. */
const clock = (): number => 1_800_000_000_000 + performance.now() - startedMs;

let serial = 0;
async function statusOf(through: GateApp, iss: string, key = KEY): Promise<number> {
  const claims = { iss, jti: `t${serial++}` };
  return (await through.get(token({ key, claims }))).status;
}

it('an issuer that is down at the start is an outage, and serves by itself within a second of being there', async () => {
  const server = await keyServer(KEY);
  await server.stop();
  const through = gateApp({ issuer: server.origin, fetch, clock });
  expectRefusal(await through.get(token({ key: KEY, claims: { iss: server.origin } })), 'keys_unavailable', through);
  expect(through.gate.status()).toMatchObject({ ready: false, issuers: [{ keys: { state: 'starting' } }] });

  await server.start();
  await through.gate.ready();
  expect(await statusOf(through, server.origin)).toBe(200);
  await through.gate.close();
  await server.stop();
});

it('an issuer that goes down later does no harm to known keys, and brings its new keys when it is back', async () => {
  const server = await keyServer(KEY);
  const through = gateApp({ issuer: server.origin, fetch, clock });
  await through.gate.ready();
  await server.stop();
  expect(await statusOf(through, server.origin, NEXT)).toBe(503);
  for (let index = 0; index < 50; index++) expect(await statusOf(through, server.origin)).toBe(200);
  expect(await statusOf(through, server.origin, NEXT)).toBe(503);

  server.publish(KEY, NEXT);
  await server.start();
  await eventually('the new key', async () => (await statusOf(through, server.origin, NEXT)) === 200);
  expect(await statusOf(through, server.origin)).toBe(200);
  await through.gate.close();
  await server.stop();
});

describe('a discovery document', () => {
  const EVIL = 'https://evil.test/';
  const MOVED = { status: '301 M', headers: 'Location: /jwks\r\n' };
  const rows: readonly [string, Fault, RegExp][] = [
    ['that never comes', () => {}, /did not respond within 5000 ms/],
    ['that drips', endless('HTTP/1.1 200 OK\r\n\r\n', Buffer.from(' '), 100), /did not respond within 5000 ms/],
    ['that breaks off', send('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"issuer":'), /could not be fetched/],
    ['of 50 MB', sized(50 * 1_048_576), /more than 1048576 bytes/],
    ['that is a page', respondWith('<html>Sign in</html>'), /did not respond with a JSON object/],
    ['that stands elsewhere', respondWith('', MOVED), /responded with 301/],
    ['of another issuer', respondWith(JSON.stringify({ issuer: EVIL, jwks_uri: EVIL })), /another issuer/],
  ];

  it.each(rows)('%s is an outage; a good one afterwards serves by itself', async (_what, fault, detail) => {
    const server = await faultServer(() => {});
    const good: Fault = (socket, request, took) => {
      const document = request.includes('/jwks')
        ? jwks(KEY)
        : { issuer: server.origin, jwks_uri: `${server.origin}/jwks` };
      respondWith(JSON.stringify(document))(socket, request, took);
    };
    server.behave = fault;
    const through = gateApp({ issuer: server.origin, fetch, clock });
    expect(await statusOf(through, server.origin)).toBe(503);
    expect(through.log.at('warn')[0]?.fields['detail']).toMatch(detail);
    expect(server.requests.every((line) => line.includes('/.well-known/'))).toBe(true);

    server.behave = good;
    await through.gate.ready();
    expect(await statusOf(through, server.origin)).toBe(200);
    await through.gate.close();
    await server.stop();
  });
});
