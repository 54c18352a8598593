import { Buffer } from 'node:buffer';
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Express, its form parser and one signature: it believes whatever it is sent, and is what everything else is a share of. */
export function mount({ issuer, audience, algorithm }) {
  const express = require('express');
  const key = newKey(algorithm);
  const header = encode({ alg: algorithm, typ: 'at+jwt', kid: 'bench' });
  const app = express();
  app.post('/connect/token', express.urlencoded({ extended: false }), function issue(req, res) {
    const { client_id, scope } = req.body;
    const iat = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, aud: audience, sub: client_id, client_id, scope, iat, exp: iat + 3600 };
    const input = `${header}.${encode({ ...claims, jti: randomUUID(), generation: 1 })}`;
    const access_token = `${input}.${sign('sha256', Buffer.from(input), key).toString('base64url')}`;
    res.json({ access_token, token_type: 'Bearer', expires_in: 3600, scope });
  });
  return { listener: app, path: '/connect/token' };
}

function newKey(algorithm) {
  if (algorithm === 'RS256') return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { key: privateKey, dsaEncoding: 'ieee-p1363' };
}

function encode(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
