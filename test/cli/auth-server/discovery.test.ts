import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ISSUER, SCOPES, closeAll, decode, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterEach(closeAll);

/** What the test reads of the state file. */
interface Keys {
  readonly signing: { readonly jwk: { readonly d: string } };
  readonly retired: readonly { readonly jwk: object }[];
}

const JWKS = '/.well-known/openid-configuration/jwks';

/** The ids of the published keys, the newest first. */
async function kidsOf(server: TestServer): Promise<string[]> {
  return (await server.get(JWKS)).body.keys.map(({ kid }: { kid: string }) => kid);
}

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
      for (const path of [
        '/tenant/.well-known/openid-configuration',
        '/.well-known/oauth-authorization-server/tenant',
        '/.well-known/openid-configuration?x=/tenant',
      ]) {
        const { status, body } = await server.get(path);
        expect([status, body.issuer, body.jwks_uri]).toEqual([200, issuer, `http://login.test/tenant${JWKS}`]);
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
    const { e, kty, n } = keys[0];
    const kid = createHash('sha256').update(JSON.stringify({ e, kty, n })).digest('base64url');
    expect(keys).toEqual([{ kty: 'RSA', e: 'AQAB', n, use: 'sig', alg: 'RS256', kid }]);
    expect(Buffer.from(n, 'base64url')).toHaveLength(256);
    const { header } = decode(await server.accessToken(await registerClient(server)));
    expect(header).toEqual({ alg: 'RS256', typ: 'at+jwt', kid });
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
    expect(await kidsOf(server)).toEqual([kid, old]);
    expect(await server.introspect(client, token)).toMatchObject({ active: true });

    await server.time.advance(3_600_000 + 59_999);
    expect(await kidsOf(server)).toEqual([kid, old]);
    await server.time.advance(1);
    expect(await kidsOf(server)).toEqual([kid]);
  });

  it('keeps every earlier key after a second rotation, for as long as its tokens can be valid', async () => {
    const server = await startServer();
    const client = await registerClient(server);
    const tokens = [await server.accessToken(client)];
    for (let rotation = 0; rotation < 2; rotation++) {
      await server.time.advance(1_000);
      await server.auth.rotateKeys();
      tokens.push(await server.accessToken(client));
    }
    expect(await kidsOf(server)).toEqual(tokens.map((token) => decode(token).header['kid']).reverse());
    for (const token of tokens) expect(await server.introspect(client, token)).toMatchObject({ active: true });
    // The first key was retired 1 s before the second.
    await server.time.advance(3_600_000 + 59_000);
    expect(await kidsOf(server)).toHaveLength(2);
    await server.auth.rotateKeys();
    expect(await kidsOf(server)).toHaveLength(3);
  });

  it('keeps no private half of a retired key on disk', async () => {
    const server = await startServer();
    const path = join(server.dataDir, 'state.json');
    const keys = () => (JSON.parse(readFileSync(path, 'utf8')) as { keys: Keys }).keys;
    const gone: string[] = [];
    for (let rotation = 0; rotation < 2; rotation++) {
      gone.push(keys().signing.jwk.d);
      await server.auth.rotateKeys();
    }
    const { signing, retired } = keys();
    expect(signing.jwk.d).toMatch(/^[\w-]{100,}$/);
    expect(new Set([...gone, signing.jwk.d]).size).toBe(3);
    expect(retired.map(({ jwk }) => Object.keys(jwk).sort())).toEqual(Array(2).fill(['e', 'kty', 'n']));
    for (const secret of gone) expect(readFileSync(path, 'utf8')).not.toContain(secret);
  });
});
