import { startTestIssuer } from '../../src/testing/index';
import type { HttpTestIssuer, HttpTestIssuerOptions } from '../../src/testing/index';
import { eventually } from '../support/key-server';
import { guardedApp } from './guarded-app';
import type { GuardedApp } from './guarded-app';

const scope = 'orders:read';
const MINUTE_MS = 60_000;

let issuer: HttpTestIssuer;
let app: GuardedApp;

beforeEach(async () => {
  issuer = await startTestIssuer();
  app = guardedApp(issuer.options);
  await app.gate.ready();
});

afterEach(async () => {
  await app.gate.close();
  await issuer.close();
});

describe('a gate that is given the options of startTestIssuer()', () => {
  it('discovers the keys, once', async () => {
    expect(await app.outcome(issuer.token({ scope }))).toBe('200');
    expect(await app.outcome(issuer.token({ scope, foreignKey: true }))).toBe('401 bad_signature');
    expect(issuer.fetches).toBe(1);
  });

  it('fetches a new key with the first token of it', async () => {
    const before = issuer.token({ scope });
    const keyId = issuer.rotate();
    expect(issuer.keyId).toBe(keyId);
    expect(await app.outcome(issuer.token({ scope }))).toBe('200');
    expect(await app.outcome(before)).toBe('200');
    expect(issuer.fetches).toBe(2);
  });

  it('refuses a key that was withdrawn once its key set is too old', async () => {
    const before = issuer.token({ scope, lifetimeSeconds: 3_600 });
    expect(await app.outcome(before)).toBe('200');
    issuer.rotate();
    issuer.removeKey();
    expect(await app.outcome(before)).toBe('200');
    issuer.clock.advance(10 * MINUTE_MS);
    expect(await app.outcome(before)).toBe('401 unknown_key');
  });

  it('sees a bump with the very next request', async () => {
    const token = issuer.token({ scope });
    expect(await app.outcome(token)).toBe('200');
    issuer.bump();
    expect(await app.outcome(token)).toBe('401 superseded');
  });
});

describe('outage()', () => {
  it.each(['503', 'garbage'] as const)(
    '%s: the last good keys are used for a limited time, then requests get 503',
    async (fault) => {
      issuer.outage(fault);
      issuer.clock.advance(15 * MINUTE_MS);
      expect(await app.outcome(issuer.token({ scope }))).toBe('200');
      issuer.clock.advance(60 * MINUTE_MS);
      expect(await app.outcome(issuer.token({ scope }))).toBe('503 keys_unavailable');
      expect(issuer.fetches).toBe(1);
      issuer.outage();
      issuer.clock.advance(MINUTE_MS);
      expect(await app.outcome(issuer.token({ scope }))).toBe('200');
    },
  );

  it('hang: a clock that moves ends the wait', async () => {
    issuer.outage('hang');
    issuer.clock.advance(71 * MINUTE_MS);
    const waiting = app.outcome(issuer.token({ scope }));
    issuer.clock.advance(5_000);
    expect(await waiting).toBe('503 keys_unavailable');
  });

  it('hang: ends with the outage', async () => {
    issuer.outage('hang');
    const { fetches } = issuer;
    const refused = expect(fetch(`${issuer.issuer}/.well-known/openid-configuration/jwks`)).rejects.toThrow();
    await eventually(() => issuer.fetches > fetches);
    issuer.outage('503');
    await refused;
    expect((await fetch(`${issuer.issuer}/generations`)).status).toBe(503);
  });

  it('breaks every endpoint until it is over', async () => {
    issuer.outage('garbage');
    const broken = await fetch(`${issuer.issuer}/.well-known/openid-configuration`);
    expect([broken.status, await broken.text()]).toEqual([200, '<p>This is not the page you wanted.</p>']);
    issuer.outage();
    expect((await fetch(`${issuer.issuer}/.well-known/openid-configuration`)).status).toBe(200);
  });

  it('refuses a fault that it does not know', () => {
    const message = 'outage(): expected one of 503, hang, garbage, or nothing, got "500"';
    expect(() => issuer.outage('500' as never)).toThrow(new TypeError(message));
  });
});

describe('startTestIssuer()', () => {
  it.each<[object, string]>([
    [
      { issuer: 'https://login.test' },
      'startTestIssuer(): unknown option "issuer"; known are port, audience, algorithm, clock',
    ],
    [{ prt: 1 }, 'startTestIssuer(): unknown option "prt"; did you mean "port"?'],
    [{ port: 70_000 }, 'startTestIssuer(): option "port" must be a whole number of ports from 0 to 65535, got 70000'],
  ])('refuses %j', async (options, message) => {
    await expect(startTestIssuer(options as HttpTestIssuerOptions)).rejects.toThrow(new TypeError(message));
  });

  it('says when its port is taken', async () => {
    const port = Number(new URL(issuer.issuer).port);
    await expect(startTestIssuer({ port })).rejects.toThrow('EADDRINUSE');
  });
});
