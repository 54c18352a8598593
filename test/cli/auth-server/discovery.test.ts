import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ISSUER, SCOPES, closeAll, decode, registerClient, startServer } from './fixtures';

afterEach(closeAll);

/** What the test reads of the state file. */
interface Stored {
  readonly keys: {
    readonly signing: { readonly jwk: { readonly d: string } };
    readonly retired: readonly { readonly jwk: object }[];
  };
}

const JWKS = '/.well-known/openid-configuration/jwks';

describe('the metadata', () => {
  it.each(['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'])(
    'stands at %s',
    async (path) => {
      const server = await startServer();
      const response = await server.get(path);
      expect(response.status).toBe(200);
      expect(response.body).toEqual({
        issuer: ISSUER,
        authorization_endpoint: `${ISSUER}/connect/authorize`,
        token_endpoint: `${ISSUER}/connect/token`,
        token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
        introspection_endpoint: `${ISSUER}/connect/introspect`,
        introspection_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
        jwks_uri: `${ISSUER}${JWKS}`,
        grant_types_supported: ['client_credentials'],
        scopes_supported: SCOPES,
        response_types_supported: [],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      });
    },
  );

  it('names an authorization endpoint, which refuses every response type: nobody can log in here', async () => {
    const server = await startServer();
    const refusal = {
      error: 'unsupported_response_type',
      error_description: 'There are no users here: the only grant type is client_credentials, at the token endpoint.',
    };
    for (const response of [
      await server.get('/connect/authorize?response_type=code&client_id=x'),
      await server.post('/connect/authorize'),
    ]) {
      expect([response.status, response.body]).toEqual([400, refusal]);
    }
  });

  it('names the scopes that are registered when any may be', async () => {
    const server = await startServer({ scopes: undefined });
    await registerClient(server, { scope: 'b a' });
    expect((await server.get('/.well-known/openid-configuration')).body.scopes_supported).toEqual(['a', 'b']);
  });

  it.each(['http://login.test/tenant', 'http://login.test/tenant/'])(
    'of %s stands where its path says',
    async (issuer) => {
      const server = await startServer({ issuer });
      const paths = [
        '/tenant/.well-known/openid-configuration',
        '/.well-known/oauth-authorization-server/tenant',
        '/.well-known/openid-configuration?x=/tenant',
      ];
      for (const path of paths) {
        const { status, body } = await server.get(path);
        expect({ status, issuer: body.issuer, jwks: body.jwks_uri }).toEqual({
          status: 200,
          issuer,
          jwks: `http://login.test/tenant${JWKS}`,
        });
      }
      expect((await server.get(`/tenant${JWKS}`)).status).toBe(200);
      expect((await server.post('/tenant/connect/token')).body.error).toBe('invalid_request');
      expect((await server.get('/tenantx/.well-known/openid-configuration')).status).toBe(404);
    },
  );
});

describe('the key set', () => {
  it('has public members only, named by their thumbprint (RFC 7638)', async () => {
    const server = await startServer();
    const { keys } = (await server.get(JWKS)).body;
    expect(keys).toHaveLength(1);
    expect(Object.keys(keys[0]).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use']);
    const thumbprint = JSON.stringify(Object.fromEntries(['e', 'kty', 'n'].map((name) => [name, keys[0][name]])));
    expect(keys[0]).toMatchObject({
      use: 'sig',
      alg: 'RS256',
      kid: createHash('sha256').update(thumbprint).digest('base64url'),
    });
    expect(Buffer.from(keys[0].n, 'base64url')).toHaveLength(256);
    const { header } = decode(await server.accessToken(await registerClient(server)));
    expect(header).toEqual({ alg: 'RS256', typ: 'at+jwt', kid: keys[0].kid });
  });

  it('after a rotation: the new key signs immediately, the old one stays until its last token has expired', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    const token = await server.accessToken(client);
    const old = decode(token).header['kid'];

    await server.auth.rotateKeys();
    const { kid } = decode(await server.accessToken(client)).header;
    expect(kid).toMatch(/^[\w-]{43}$/);
    expect(kid).not.toBe(old);
    const kids = async () => (await server.get(JWKS)).body.keys.map((key: { kid: string }) => key.kid);
    expect(await kids()).toEqual([kid, old]);
    expect(await server.introspect(client, token)).toMatchObject({ active: true });

    await server.time.advance(3_600_000 + 59_999);
    expect(await kids()).toEqual([kid, old]);
    await server.time.advance(1);
    expect(await kids()).toEqual([kid]);
  });

  it('keeps every earlier key after a second rotation, for as long as its tokens can be valid', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    const kids = async () => (await server.get(JWKS)).body.keys.map((key: { kid: string }) => key.kid);
    const tokens = [await server.accessToken(client)];
    for (let rotation = 0; rotation < 2; rotation++) {
      await server.time.advance(1_000);
      await server.auth.rotateKeys();
      tokens.push(await server.accessToken(client));
    }
    expect(await kids()).toEqual(tokens.map((token) => decode(token).header['kid']).reverse());
    for (const token of tokens) expect(await server.introspect(client, token)).toMatchObject({ active: true });
    // The first key was retired 1 s before the second.
    await server.time.advance(3_600_000 + 59_000);
    expect(await kids()).toHaveLength(2);
    await server.auth.rotateKeys();
    expect(await kids()).toHaveLength(3);
  });

  it('outlives a restart, retired keys too, without their private half', async () => {
    const server = await startServer();
    await server.auth.rotateKeys();
    const before = (await server.get(JWKS)).body;
    expect(before.keys).toHaveLength(2);
    const again = await server.restart();
    expect((await again.get(JWKS)).body).toEqual(before);
  });

  it('keeps no private half of a retired key on disk', async () => {
    const server = await startServer();
    const path = join(server.dataDir, 'state.json');
    const privateHalf = () => (JSON.parse(readFileSync(path, 'utf8')) as Stored).keys.signing.jwk.d;
    const gone: string[] = [];
    for (let rotation = 0; rotation < 2; rotation++) {
      gone.push(privateHalf());
      await server.auth.rotateKeys();
    }
    const text = readFileSync(path, 'utf8');
    const { signing, retired } = (JSON.parse(text) as Stored).keys;
    expect(signing.jwk.d).toMatch(/^[\w-]{100,}$/);
    expect(new Set([...gone, signing.jwk.d]).size).toBe(3);
    expect(retired.map(({ jwk }) => Object.keys(jwk).sort())).toEqual(Array(2).fill(['e', 'kty', 'n']));
    for (const secret of gone) expect(text).not.toContain(secret);
  });
});
