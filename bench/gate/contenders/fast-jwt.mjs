import { createVerifier } from 'fast-jwt';
import { hasScope, refuse } from './by-hand.mjs';

/** fast-jwt with its cache on and a given public key: it fetches none. */
export function mount(app, { issuer, audience, algorithm, publicKey, respond }) {
  const verify = createVerifier({
    key: publicKey,
    algorithms: [algorithm],
    allowedIss: issuer,
    allowedAud: audience,
    requiredClaims: ['exp', 'iat'],
    cache: 1_000,
  });
  app.use('/v1', function authenticate(req, res, next) {
    const [scheme, token] = (req.headers.authorization ?? '').split(' ');
    if (scheme !== 'Bearer' || !token) return refuse(res, 401, 'Bearer realm="api"');
    try {
      req.auth = verify(token);
    } catch {
      return refuse(res, 401, 'Bearer realm="api", error="invalid_token"');
    }
    next();
  });
  app.get('/v1/orders', hasScope('orders:read'), respond);
}
