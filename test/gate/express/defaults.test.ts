import { inspect } from 'node:util';
import express from 'express';
import { authenticate, requireScope } from '../../../src/gate';
import { readGateOptions } from '../../../src/gate/verifier/read-options';
import { getFrom } from '../../support/gate-app';
import { AUDIENCE, ISSUER, token } from '../../support/issuer';
import { keyServer } from '../../support/key-server';
import { jwks, testKey } from '../../support/keys';

const required = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()) };
const read = (options: object) => readGateOptions({ ...required, ...options });

describe('options that are left out', () => {
  it('have their documented defaults', () => {
    const { issuers, ...gate } = read({});
    expect(gate).toMatchObject({
      unguarded: 'warn',
      optional: false,
      refusals: 'respond',
      realm: 'api',
      resource: undefined,
      problemTypes: undefined,
      exposeReasons: true,
      verifiedTokens: 5_000,
      pollMs: 5_000,
      readTimeoutMs: 5_000,
      onDecision: undefined,
    });
    expect(issuers).toMatchObject([
      {
        issuer: ISSUER,
        audiences: [AUDIENCE],
        clientIds: undefined,
        authUrl: ISSUER,
        algorithms: 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' '),
        scopes: undefined,
        generationClaim: 'generation',
        generationSource: undefined,
        maxStalenessMs: 60_000,
        onStale: 'reject',
        opaque: undefined,
        keysMaxAgeMs: 600_000,
        keysStaleMs: 3_600_000,
        clockToleranceMs: 10_000,
        maxTokenAgeMs: 86_400_000,
        confirmations: [],
      },
    ]);
    expect(read({ optional: true }).unguarded).toBe('allow');
  });

  it('let a gate fetch keys, tell the time and wait by itself', async () => {
    const server = await keyServer(testKey());
    const gate = authenticate({ issuer: server.origin, audience: AUDIENCE });
    const app = express().use(gate, requireScope('orders:read'), (_req, res) => void res.json('ok'));
    const now = Date.now() / 1000;
    const raw = token({ claims: { iss: server.origin, iat: now - 5, exp: now + 60, generation: Date.now() } });
    await getFrom(app, raw).expect(200);
    await gate.close();
    await server.stop();
  });
});

describe('options that are changed after they were read', () => {
  it('do not count: all of them are copied', () => {
    const issuer = {
      ...required,
      audience: [AUDIENCE],
      clientIds: ['pos-17'],
      algorithms: ['ES256' as const],
      scopes: { from: ['scope', ['realm_access', 'roles']], map: { till: ['orders:read'], cook: 'kitchen:read' } },
      opaque: { clientId: 'api', clientSecret: 'secret' },
    };
    const resource = 'https://api.test';
    const options = { issuers: [issuer], challengeScopes: ['orders:read'], realm: 'shop', resource, optional: true };
    const { logger: _logger, ...settings } = readGateOptions(options);
    const before = inspect(settings, { depth: 9 });
    spoil(options);
    expect(options.challengeScopes).toEqual(['changed', 'changed']);
    expect(inspect(settings, { depth: 9 })).toBe(before);
  });

  /** Changes every value in place, and adds one to every list; the list of a key set may be replaced on purpose. */
  function spoil(part: object): void {
    for (const [name, value] of Object.entries(part)) {
      if (value === required.keys) continue;
      if (typeof value === 'object') spoil(value as object);
      else Reflect.set(part, name, 'changed');
    }
    if (Array.isArray(part)) part.push('changed');
  }
});

describe('options that are accepted', () => {
  it.each<[object, object]>([
    [{ refusals: 'next' }, { refusals: 'next' }],
    [{ problemTypes: 'http://api.test/problems/' }, { problemTypes: 'http://api.test/problems/' }],
    [{ resource: 'http://api.internal' }, { resource: 'http://api.internal' }],
    [{ exposeReasons: false }, { exposeReasons: false }],
  ])('of the gate: %j', (options, expected) => {
    expect(read(options)).toMatchObject(expected);
  });

  it.each<[object, object]>([
    [{ clientIds: ['a', 'b'] }, { clientIds: ['a', 'b'] }],
    [{ audience: ['a', 'b'] }, { audiences: ['a', 'b'] }],
    [{ audience: false, preset: 'cognito' }, { audiences: false }],
    [{ generationClaim: false }, { generationClaim: undefined }],
    [{ onStale: 'accept' }, { onStale: 'accept' }],
    [{ maxStalenessMs: 1, keysMaxAgeMs: 1_000, keysStaleMs: 0 }, { keysStaleMs: 0 }],
    [
      { clockToleranceSeconds: 300, maxTokenAgeSeconds: 1 },
      { clockToleranceMs: 300_000, maxTokenAgeMs: 1_000 },
    ],
    // The issuer is a name where nothing is fetched from it.
    [{ keys: undefined, issuer: 'till-17', jwksUri: 'https://login.test/jwks' }, { issuer: 'till-17' }],
    // Only an http: URL is checked for TLS: the others have their own.
    [{ generationSource: 'redis://host/0?key=http:' }, { generationSource: 'redis://host/0?key=http:' }],
    [{ generationSource: 'https://user:secret@login.test/g' }, {}],
  ])('of an issuer: %j', (options, expected) => {
    expect(read(options).issuers).toMatchObject([expected]);
  });

  it.each<[object, string]>([
    [{ refusals: 'throw' }, 'option "refusals" must be one of respond, next, got "throw"'],
    [{ problemTypes: 'https://' }, 'option "problemTypes" must be an http(s) URL, got "https://"'],
  ])('and not: %j', (options, message) => {
    expect(() => read(options)).toThrow(new TypeError(`authenticate(): ${message}`));
  });
});
