#!/usr/bin/env bash
# Packages:  jose 6.2.18, jwks-rsa 4.1.0, aws-jwt-verify 5.2.1, get-jwks 11.0.3, jsonwebtoken 9.0.3 (npm), PyJWT 2.15.1, joserfc 1.8.0 (PyPI)
# Behaviour: RFC 7517 section 4.5 allows one `kid` for keys of different types that stand for each other. Of a set with an EC and an RSA
#            key of the same `kid`, jose, get-jwks and joserfc take the one that fits the token's `alg`. jwks-rsa, aws-jwt-verify and
#            PyJWT take the first one.
# Seen:      set [EC, RSA], a token of RS256: accepted by jose, get-jwks, joserfc; refused by the other three. Set [RSA, EC]: all accept.
# Surprise:  whether a token is good depends on the order of the set, which means nothing by default (section 5). A token server that
#            names its keys by date and adds ES256 next to RS256 cuts off half of its APIs, and those say that the token is at fault.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund \
  jose@6.2.18 jwks-rsa@4.1.0 aws-jwt-verify@5.2.1 get-jwks@11.0.3 jsonwebtoken@9.0.3
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'PyJWT[crypto]==2.15.1' joserfc==1.8.0
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { JwtVerifier } from 'aws-jwt-verify';
import buildGetJwks from 'get-jwks';
import { SignJWT, createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose';
import jsonwebtoken from 'jsonwebtoken';
import jwksRsa from 'jwks-rsa';

const rsa = await generateKeyPair('RS256');
const ec = await generateKeyPair('ES256');
const published = async (pair, alg) => ({ ...(await exportJWK(pair.publicKey)), kid: '2026-11', use: 'sig', alg });
const [rsaKey, ecKey] = [await published(rsa, 'RS256'), await published(ec, 'ES256')];
let keys;
const server = createServer((_req, res) => res.end(JSON.stringify({ keys }))).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const url = `http://127.0.0.1:${server.address().port}`;
const issuer = 'https://login.example';
const token = await new SignJWT({ sub: 'till-1' })
  .setProtectedHeader({ alg: 'RS256', kid: '2026-11' })
  .setIssuer(issuer)
  .setAudience('orders')
  .setExpirationTime('5m')
  .sign(rsa.privateKey);
const check = (pem) => jsonwebtoken.verify(token, pem, { algorithms: ['RS256', 'ES256'] });
const verifiers = {
  jose: () => jwtVerify(token, createRemoteJWKSet(new URL(url))),
  'get-jwks': async () => check(await buildGetJwks().getPublicKey({ kid: '2026-11', alg: 'RS256', domain: url })),
  'jwks-rsa': async () => check((await jwksRsa({ jwksUri: url }).getSigningKey('2026-11')).getPublicKey()),
  'aws-jwt-verify': () => {
    const verifier = JwtVerifier.create({ issuer, audience: 'orders', jwksUri: 'https://login.example/jwks' });
    verifier.cacheJwks({ keys });
    return verifier.verify(token);
  },
};
try {
  const seen = {};
  for (const [order, set] of Object.entries({ ecFirst: [ecKey, rsaKey], rsaFirst: [rsaKey, ecKey] })) {
    keys = set;
    seen[order] = {};
    for (const [name, verify] of Object.entries(verifiers)) {
      seen[order][name] = await Promise.resolve().then(verify).then(() => 'accepted', (error) => error.message);
    }
  }
  console.log(seen);
  const { jose, 'get-jwks': getJwks, ...others } = seen.ecFirst;
  assert.deepEqual([jose, getJwks], ['accepted', 'accepted']);
  assert.match(others['jwks-rsa'], /"alg" parameter for "ec" key type/);
  assert.match(others['aws-jwt-verify'], /JWT signature algorithm not allowed: RS256/);
  assert.ok(Object.values(seen.rsaFirst).every((verdict) => verdict === 'accepted'));
  writeFileSync('input.json', JSON.stringify({ token, ecFirst: [ecKey, rsaKey], rsaFirst: [rsaKey, ecKey] }));
} finally {
  server.close();
  server.closeAllConnections();
}
EOF
cat > run.py <<'EOF'
import json

import jwt
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import KeySet

with open('input.json') as file:
    given = json.load(file)
token = given['token']


class Keys(jwt.PyJWKClient):
    def __init__(self, keys):
        super().__init__('https://login.example/jwks')
        self.keys = keys

    def fetch_data(self):
        return {'keys': self.keys}


def of_pyjwt(keys):
    key = Keys(keys).get_signing_key_from_jwt(token)
    return jwt.decode(token, key, ['RS256', 'ES256'], audience='orders')


for order in ('ecFirst', 'rsaFirst'):
    claims = joserfc_jwt.decode(token, KeySet.import_key_set({'keys': given[order]}), ['RS256', 'ES256']).claims
    assert claims['sub'] == 'till-1'
try:
    of_pyjwt(given['ecFirst'])
    refused = None
except jwt.InvalidAlgorithmError as error:
    refused = str(error)
print('joserfc accepted; PyJWT:', refused)
assert 'does not match' in refused
assert of_pyjwt(given['rsaFirst'])['sub'] == 'till-1'
EOF
node run.mjs
env/bin/python run.py
