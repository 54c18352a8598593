import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Set up as in its README, in the mode that checks RFC 9068. */
export function mount(app, { issuer, audience, algorithm, jwksUri, dpop, respond }) {
  const { auth, requiredScopes } = require('express-oauth2-jwt-bearer');
  const proofs = { dpop: dpop ? { enabled: true, iatOffset: 600 } : { enabled: false } };
  app.use('/v1', auth({ issuer, audience, jwksUri, tokenSigningAlg: algorithm, strict: true, ...proofs }));
  app.get('/v1/orders', requiredScopes('orders:read'), respond);
  app.use(sendError);
}

function sendError(error, _req, res, _next) {
  res.status(error.status ?? 500).set(error.headers ?? {});
  res.json({ error: error.code });
}
