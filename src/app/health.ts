import { Router } from 'express';
import type { GateStatus } from 'tillgate';
import { sendProblem } from 'tillgate';
import { refuseWriting } from './pages';

/**
 * `/livez` (the process runs) and `/readyz` (it accepts requests), for load balancers; both without a token.
 *
 * @param problemTypes - base URL of the problem pages
 */
export function healthRoutes(status: () => GateStatus, isDraining: () => boolean, problemTypes: string): Router {
  const router = Router();
  router.use(function neverCached(_req, res, next) {
    res.set('Cache-Control', 'no-store');
    next();
  });
  router
    .route('/livez')
    .get((_req, res) => void res.json({ status: 'alive' }))
    .all(refuseWriting);
  router
    .route('/readyz')
    .get(function readyz(req, res) {
      const { ready, issuers } = status();
      const [issuer] = issuers;
      const components = { keys: issuer?.keys.state ?? 'none', generations: issuer?.generations?.source ?? 'off' };
      if (ready && !isDraining()) return void res.json({ status: 'ready', components });
      const code = isDraining() ? 'draining' : 'not_ready';
      sendProblem(req, res, {
        status: 503,
        type: problemTypes + code,
        code,
        title: 'Not ready',
        detail: isDraining() ? 'The server is stopping.' : 'Something that the API needs is not available yet.',
        headers: { 'Retry-After': '1' },
        members: { components },
      });
    })
    .all(refuseWriting);
  return router;
}
