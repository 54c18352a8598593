/** What verifies tokens in this process. Each function takes the credentials of a window and returns once all are verified. */
import { createPublicKey, verify as verifySignature } from 'node:crypto';
import { createRequire } from 'node:module';
import { setImmediate } from 'node:timers';
import { createVerifier } from 'fast-jwt';
import { createLocalJWKSet, jwtVerify } from 'jose';

const require = createRequire(import.meta.url);
const { authenticate, requireScope } = require('../../../src/gate/dist/index.js');
const { memoryGenerations } = require('../../../src/gate/dist/generation/index.js');
const { freezeJson, parseJsonObject } = compiled('../../../src/gate/net/strict-json.ts');
const jsonwebtoken = require('jsonwebtoken');
const { Authenticator } = require('passport');
const { Strategy: BearerStrategy } = require('passport-http-bearer');

/** A module of the gate that no entry has, compiled as a build does. */
function compiled(file) {
  const entryPoints = [require.resolve(file)];
  const { outputFiles } = require('esbuild').buildSync({ entryPoints, bundle: true, platform: 'node', write: false });
  const module = { exports: {} };
  new Function('module', 'exports', 'require', outputFiles[0].text)(module, module.exports, require);
  return module.exports;
}

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

  constructor(req, done) {
    this.req = req;
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
      const res = new Response(req, (status) => {
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

/**
 * The floor of a gate: each check that it cannot leave out, in one function for one issuer and one key, without options,
 * cache, generations, observers or reasons. What a gate costs above it is its own.
 */
export function floor({ issuer, audience, algorithm, jwks }) {
  const key = createPublicKey({ key: jwks.keys[0], format: 'jwk' });
  const input = algorithm === 'ES256' ? { key, dsaEncoding: 'ieee-p1363' } : { key };
  const passport = new Authenticator();
  passport.use(new BearerStrategy({ passReqToCallback: true }, (req, token, done) => done(null, verify(token))));
  const authenticateBearer = passport.authenticate('bearer', { session: false, assignProperty: 'auth' });
  const states = new WeakMap();
  const turn = [];

  function nextTurn(signed) {
    return new Promise((resolve) => {
      if (turn.length === 0) setImmediate(() => turn.splice(0).forEach((run) => run()));
      turn.push(() => resolve(verifySignature('sha256', signed.text, input, signed.signature)));
    });
  }

  async function verify(token) {
    const [header, payload, signature] = token.split('.');
    const { alg, typ, crit, b64 } = HEADERS.get(header) ?? parsed(header);
    const claims = parsed(payload);
    const signed = {
      text: Buffer.from(token.slice(0, token.lastIndexOf('.')), 'latin1'),
      signature: bytesOf(signature),
    };
    if (alg !== algorithm || typ.toLowerCase() !== 'at+jwt' || crit || b64 || !(await nextTurn(signed))) throw REFUSED;
    const { iss, aud, exp, nbf, iat, sub, jti, client_id: clientId, cnf, scope } = claims;
    const texts = [iss, clientId, scope].every((text) => typeof text === 'string');
    const times = [exp, iat].every(Number.isFinite) && (nbf === undefined || Number.isFinite(nbf));
    const now = Date.now() / 1000;
    if (!texts || !times || iss !== issuer || ![aud].flat().includes(audience) || cnf) throw REFUSED;
    if (now >= exp || nbf > now || iat > now || exp - iat > 86_400) throw REFUSED;
    const scopes = Object.freeze([...new Set(scope.split(' '))]);
    return Object.freeze({ issuer, clientId, sub, jti, scopes, exp, claims: freezeJson(claims) });
  }

  async function decide({ authorization }) {
    const req = new Request(authorization);
    const res = new Response(req, () => {});
    if (!/^Bearer [A-Za-z0-9\-._~+/]+=*$/.test(req.headers.authorization) || req.url.includes('?')) throw REFUSED;
    const ours = { headers: { authorization: req.headers.authorization } };
    authenticateBearer(ours, res, () => {});
    req.auth = await ours.auth;
    states.set(req, req.auth);
    if (!states.get(req).scopes.includes('orders:read')) throw REFUSED;
    res.end();
  }

  return (window) => byTurns(window, decide);
}

const REFUSED = new Error('refused');
const HEADERS = new Map();

function parsed(part) {
  const value = parseJsonObject(bytesOf(part));
  if (value.alg) HEADERS.set(part, value);
  return value;
}

function bytesOf(part) {
  const bytes = Buffer.from(part, 'base64url');
  if (bytes.toString('base64url') !== part) throw REFUSED;
  return bytes;
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

export function fastJwt({ issuer, audience, algorithm, jwks }, cache = false) {
  const key = createPublicKey({ key: jwks.keys[0], format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  const rules = { allowedIss: issuer, allowedAud: audience, requiredClaims: ['exp', 'iat'], cache };
  const verify = createVerifier({ key, algorithms: [algorithm], ...rules });
  return (window) => {
    for (const { token } of window) verify(token);
  };
}

/** The same with its cache, from the request to the handler as above. */
export function fastJwtCaching(issuer) {
  const verify = fastJwt(issuer, MOST_KNOWN);

  async function decide({ authorization }) {
    const req = new Request(authorization);
    const res = new Response(req, () => {});
    const [scheme, token] = req.headers.authorization.split(' ');
    if (scheme !== 'Bearer') throw REFUSED;
    verify([{ token }]);
    res.end();
  }

  return (window) => byTurns(window, decide);
}

/** More tokens than are used. */
const MOST_KNOWN = 5_000;

async function byTurns(window, decide) {
  for (let at = 0; at < window.length; at += AT_A_TIME) {
    await Promise.all(window.slice(at, at + AT_A_TIME).map(decide));
  }
}
