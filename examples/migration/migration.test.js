'use strict';
const assert = require('node:assert/strict');
const { once } = require('node:events');
const { createServer } = require('node:http');
const { after, before, describe, it } = require('node:test');
const request = require('supertest');
const { createTestIssuer } = require('@tillgate/testing');

/** An authorization server of any vendor: its key set is at each of their paths. */
const issuer = createTestIssuer({ algorithm: 'RS256' });
const { keys } = issuer.options.keys;
const server = createServer((req, res) => {
  const [, path, isMetadata] = /^(.*?)(\/\.well-known\/openid-configuration)?$/.exec(req.url);
  const base = `http://${req.headers.host}${path}`;
  const jwks = { keys: keys.map((key) => ({ use: 'sig', alg: 'RS256', ...key })) };
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify(isMetadata ? { issuer: base, jwks_uri: `${base}/jwks` } : jwks));
});
before(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  Object.assign(process.env, {
    KEYCLOAK_URL: url,
    ISSUER: url,
    JWKS_URI: `${url}/jwks`,
    OKTA_ISSUER: `${url}/oauth2/default`,
  });
});
after(() => server.close());

/** A token with exactly these claims and the times. */
function tokenWith(typ, { iss = process.env.ISSUER, ...claims }, wrong = {}) {
  const usual = { client_id: undefined, generation: undefined, scope: undefined, sub: undefined };
  return issuer.token({ issuer: iss, claims: { ...usual, ...claims }, header: { typ }, ...wrong });
}

const KEYCLOAK = {
  iss: () => `${process.env.KEYCLOAK_URL}/realms/shop`,
  claims: { aud: ['account', 'orders-api'], typ: 'Bearer', azp: 'till-7', sub: 'a', scope: 'email' },
};
const roles = (realm, api, office) => ({
  realm_access: { roles: realm },
  resource_access: { 'orders-api': { roles: api }, 'back-office': { roles: office } },
});

/** Each claim of a good token, and of tokens that are refused. */
const VENDORS = {
  'keycloak-connect': {
    typ: 'JWT',
    iss: KEYCLOAK.iss,
    good: { ...KEYCLOAK.claims, ...roles(['till'], [], []) },
    poor: { ...KEYCLOAK.claims, ...roles([], ['till'], ['till']) },
    foreign: { aud: 'account' },
  },
  'passport-jwt': {
    typ: 'at+jwt',
    good: { aud: 'https://api.example.com', sub: 'till-7', client_id: 'till-7', scope: 'orders:read' },
    poor: { aud: 'https://api.example.com', sub: 'till-7', client_id: 'till-7', scope: 'orders:write' },
    foreign: { aud: 'https://other.example.com' },
  },
  'aws-jwt-verify': {
    typ: undefined,
    iss: () => 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_EXAMPLE',
    good: { token_use: 'access', client_id: 'till-7', sub: 'till-7', scope: 'commerce/orders:read', aud: undefined },
    poor: { token_use: 'access', client_id: 'till-7', sub: 'till-7', scope: 'commerce/orders:write', aud: undefined },
    foreign: { client_id: 'kiosk-2' },
  },
  'okta-jwt-verifier': {
    typ: undefined,
    iss: () => process.env.OKTA_ISSUER,
    good: { ver: 1, aud: 'api://orders', cid: 'till-7', sub: 'till-7', scp: ['orders:read'] },
    poor: { ver: 1, aud: 'api://orders', cid: 'till-7', sub: 'till-7', scp: ['orders:write'] },
    foreign: { aud: 'api://other' },
  },
  'passport-azure-ad': {
    typ: 'JWT',
    programs: ['after'],
    iss: () => 'https://login.microsoftonline.com/8c1c6a1b-0000-4000-8000-000000000001/v2.0',
    good: { aud: '4d2f0e7a-0000-4000-8000-000000000002', azp: 'till-7', roles: ['orders:read'], ver: '2.0' },
    poor: { aud: '4d2f0e7a-0000-4000-8000-000000000002', azp: 'till-7', roles: ['orders:write'], ver: '2.0' },
    foreign: { aud: '00000003-0000-0000-c000-000000000000' },
  },
};

for (const [name, { typ, iss, good, poor, foreign, programs = ['before', 'after'] }] of Object.entries(VENDORS)) {
  const token = (claims, wrong) => tokenWith(typ, { ...(iss && { iss: iss() }), ...claims }, wrong);
  for (const program of programs) {
    describe(`${name}: ${program}`, () => {
      const get = (path, text) => {
        const app = require(`./${name}/${program}.js`);
        app.verifier?.cacheJwks({ keys: keys.map((key) => ({ use: 'sig', alg: 'RS256', ...key })) });
        const sent = request(app).get(path);
        return text === undefined ? sent : sent.set('Authorization', `Bearer ${text}`);
      };

      it('accepts a good token', async () => {
        const { status, body } = await get('/orders', token(good));
        assert.deepEqual([status, body], [200, { caller: 'till-7' }]);
      });

      it('refuses a request that has no right token', async () => {
        // keycloak-connect sends 403 for each of them: it does not tell a bad token from one that is not enough.
        const refused = name === 'keycloak-connect' && program === 'before' ? 403 : 401;
        const expired = { exp: Math.floor(Date.now() / 1000) - 3_600, iat: Math.floor(Date.now() / 1000) - 7_200 };
        for (const text of [
          undefined,
          token({ ...good, ...foreign }),
          token({ ...good, ...expired }),
          token(good, { foreignKey: true }),
          token({ ...good, iss: 'https://other.example.com' }),
        ]) {
          assert.equal((await get('/orders', text)).status, refused);
        }
      });

      it('refuses a token that is not enough', async () => {
        assert.equal((await get('/orders', token(poor))).status, 403);
      });
    });
  }
}

describe('keycloak-connect', () => {
  for (const program of ['before', 'after']) {
    it(`${program}: roles of the realm and of clients stay apart`, async () => {
      const app = require(`./keycloak-connect/${program}.js`);
      const statuses = async (...given) => {
        const text = tokenWith('JWT', { ...KEYCLOAK.claims, iss: KEYCLOAK.iss(), ...roles(...given) });
        const sent = ['/stock', '/reports', '/refunds'].map((path) =>
          request(app).get(path).set('Authorization', `Bearer ${text}`),
        );
        return (await Promise.all(sent)).map(({ status }) => status);
      };
      assert.deepEqual(await statuses(['till'], ['stock-reader', 'refunder'], ['manager']), [200, 200, 200]);
      assert.deepEqual(
        await statuses(['stock-reader', 'manager', 'refunder'], ['manager', 'till'], []),
        [403, 403, 403],
      );
    });
  }
});

describe('passport-azure-ad', () => {
  it('after: tokens of version 1, of people and of machines', async () => {
    const app = require('./passport-azure-ad/after.js');
    const v1 = {
      iss: 'https://sts.windows.net/8c1c6a1b-0000-4000-8000-000000000001/',
      aud: 'api://4d2f0e7a-0000-4000-8000-000000000002',
      ver: '1.0',
    };
    for (const [claims, status] of [
      [{ appid: 'till-7', roles: ['orders:read'] }, 200],
      [{ appid: 'web-shop', scp: 'openid orders:read', sub: 'anna' }, 200],
      [{ appid: 'web-shop', scp: 'openid', roles: ['orders:read'], sub: 'anna' }, 200],
      [{ appid: 'web-shop', scp: 'openid', sub: 'anna' }, 403],
      [{ appid: 'till-7', roles: ['orders:read'], iss: 'https://sts.windows.net/another-tenant/' }, 401],
    ]) {
      const sent = request(app).get('/orders');
      const response = await sent.set('Authorization', `Bearer ${tokenWith('JWT', { ...v1, ...claims })}`);
      assert.equal(response.status, status);
    }
  });
});
