import { createRequire } from 'node:module';
import { hasScope, refuse } from './by-hand.mjs';

const require = createRequire(import.meta.url);

/** express-jwt with the keys of jwks-rsa, as their READMEs say. */
export function mount(app, { issuer, audience, jwksUri, answer }) {
  const { expressjwt } = require('express-jwt');
  const { expressJwtSecret } = require('jwks-rsa');
  const secret = expressJwtSecret({ jwksUri, cache: true, rateLimit: true });
  app.use('/v1', expressjwt({ secret, issuer, audience, algorithms: ['RS256'] }));
  app.get('/v1/orders', hasScope('orders:read'), answer);
  app.use(answerRefusal);
}

function answerRefusal(error, _req, res, _next) {
  refuse(res, error.status ?? 500, 'Bearer realm="api", error="invalid_token"');
}
