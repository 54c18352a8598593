import { createHash } from 'node:crypto';
import { EmbeddedJWK, calculateJwkThumbprint, createRemoteJWKSet, jwtVerify } from 'jose';
import { hasScope, refuse } from './by-hand.mjs';

/** jose with its remote key set, written by hand. */
export function mount(app, { issuer, audience, algorithm, jwksUri, dpop, respond }) {
  const keys = createRemoteJWKSet(new URL(jwksUri));
  const rules = {
    issuer,
    audience,
    algorithms: [algorithm],
    typ: 'at+jwt',
    requiredClaims: ['exp', 'iat', 'client_id'],
  };
  app.use('/v1', async function authenticate(req, res, next) {
    const [scheme, token] = (req.headers.authorization ?? '').split(' ');
    if (scheme !== (dpop ? 'DPoP' : 'Bearer') || !token) return refuse(res, 401, 'Bearer realm="api"');
    try {
      const claims = (await jwtVerify(token, keys, rules)).payload;
      if (dpop) await verifyProof(req, token, claims.cnf?.jkt);
      req.auth = claims;
    } catch {
      return refuse(res, 401, 'Bearer realm="api", error="invalid_token"');
    }
    next();
  });
  app.get('/v1/orders', hasScope('orders:read'), respond);
}

/** What RFC 9449 section 4.3 asks for, with the proofs that were used kept in memory. */
const used = new Set();

async function verifyProof(req, token, thumbprint) {
  const rules = { typ: 'dpop+jwt', algorithms: ['ES256'], maxTokenAge: 600 };
  const { payload, protectedHeader } = await jwtVerify(req.headers.dpop ?? '', EmbeddedJWK, rules);
  const isFor =
    payload.htm === req.method &&
    payload.htu === `http://${req.headers.host}${req.originalUrl}` &&
    payload.ath === createHash('sha256').update(token).digest('base64url');
  if (!isFor || (await calculateJwkThumbprint(protectedHeader.jwk)) !== thumbprint) throw new Error('wrong proof');
  if (used.has(payload.jti)) throw new Error('used before');
  used.add(payload.jti);
}
