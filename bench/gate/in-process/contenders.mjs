/** What verifies tokens in this process. Each function takes the credentials of a window and returns once all are verified. */
import { createPublicKey, verify as verifySignature } from 'node:crypto';
import { createRequire } from 'node:module';
import { createVerifier } from 'fast-jwt';
import { createLocalJWKSet, jwtVerify } from 'jose';

const require = createRequire(import.meta.url);
const { authenticate, requireScope } = require('../../../src/gate/dist/index.js');
const { memoryGenerations } = require('../../../src/gate/dist/generation/index.js');
const jsonwebtoken = require('jsonwebtoken');

/** Requests that are decided at the same time: as many as `npm run bench` has connections. */
const AT_A_TIME = 32;

/** As much of a request as a gate reads. */
class Request {
  method = 'GET';
  url = '/v1/orders';
  socket = SOCKET;

  constructor(authorization) {
    if (authorization === undefined) {
      this.headers = { host: 'api.example.com', accept: '*/*' };
      this.rawHeaders = ['Host', 'api.example.com', 'Accept', '*/*'];
    } else {
      this.headers = { host: 'api.example.com', accept: '*/*', authorization };
      this.rawHeaders = ['Host', 'api.example.com', 'Accept', '*/*', 'Authorization', authorization];
    }
  }
}

const SOCKET = { destroyed: false, remoteAddress: '127.0.0.1' };

/** As much of a response as a gate writes. */
class Response {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;

  constructor(done) {
    this.done = done;
  }

  setHeader() {}

  end() {
    this.writableEnded = true;
    this.done(this.statusCode);
  }
}

/** A token for those that verify tokens, and the header with it for those that verify requests. */
export function credentialsOf(token) {
  // By way of bytes, because Node's parser makes strings in one piece.
  const authorization = token === undefined ? undefined : Buffer.from(`Bearer ${token}`).toString('latin1');
  return { token, authorization };
}

const logger = { info() {}, warn() {}, error: console.error };

/** The gate as the README mounts it, with a guard after it: from the request to the handler or to the refusal. */
export async function tillgate({ issuer, audience, jwks }, expected = 200) {
  const gate = authenticate({ issuer, audience, keys: jwks, generationSource: memoryGenerations(), logger });
  const guard = requireScope('orders:read');
  await gate.ready();

  function decide({ authorization }) {
    return new Promise((resolve, reject) => {
      const req = new Request(authorization);
      const res = new Response((status) => {
        if (status === expected) resolve();
        else reject(new Error(`expected ${expected}, got ${status}`));
      });
      gate(req, res, () => guard(req, res, () => res.end()));
    });
  }

  return { run: (window) => byTurns(window, decide), close: () => gate.close() };
}

/** One call of `node:crypto` with a cached key, and nothing else: what no verification can do without. */
export function bare({ jwks: { keys }, algorithm }) {
  const key = createPublicKey({ key: keys[0], format: 'jwk' });
  const input = algorithm === 'ES256' ? { key, dsaEncoding: 'ieee-p1363' } : { key };
  return (parts) => {
    for (const { text, signature } of parts) {
      if (!verifySignature('sha256', text, input, signature)) throw new Error('bad signature');
    }
  };
}

/** What `bare` verifies: the text of a token as bytes, and its signature. */
export function partsOf(token) {
  const end = token.lastIndexOf('.');
  return { text: Buffer.from(token.slice(0, end)), signature: Buffer.from(token.slice(end + 1), 'base64url') };
}

export function jose({ issuer, audience, algorithm, jwks }) {
  const keys = createLocalJWKSet(jwks);
  const requiredClaims = ['exp', 'iat', 'client_id'];
  const rules = { issuer, audience, algorithms: [algorithm], typ: 'at+jwt', requiredClaims };
  return (window) => byTurns(window, ({ token }) => jwtVerify(token, keys, rules));
}

export function jsonwebtokenVerify({ issuer, audience, algorithm, jwks }) {
  const key = createPublicKey({ key: jwks.keys[0], format: 'jwk' });
  return (window) => {
    for (const { token } of window) jsonwebtoken.verify(token, key, { issuer, audience, algorithms: [algorithm] });
  };
}

export function fastJwt({ issuer, audience, algorithm, jwks }) {
  const key = createPublicKey({ key: jwks.keys[0], format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  const rules = { allowedIss: issuer, allowedAud: audience, requiredClaims: ['exp', 'iat'], cache: false };
  const verify = createVerifier({ key, algorithms: [algorithm], ...rules });
  return (window) => {
    for (const { token } of window) verify(token);
  };
}

async function byTurns(window, decide) {
  for (let at = 0; at < window.length; at += AT_A_TIME) {
    await Promise.all(window.slice(at, at + AT_A_TIME).map(decide));
  }
}
