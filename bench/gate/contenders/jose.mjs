import { createRemoteJWKSet, jwtVerify } from 'jose';
import { hasScope, refuse } from './by-hand.mjs';

/** jose with its remote key set, written by hand. */
export function mount(app, { issuer, audience, algorithm, jwksUri, respond }) {
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
    if (scheme !== 'Bearer' || !token) return refuse(res, 401, 'Bearer realm="api"');
    try {
      req.auth = (await jwtVerify(token, keys, rules)).payload;
    } catch {
      return refuse(res, 401, 'Bearer realm="api", error="invalid_token"');
    }
    next();
  });
  app.get('/v1/orders', hasScope('orders:read'), respond);
}
