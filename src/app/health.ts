import { Router } from 'express';
import { sendProblem } from '../index';

/** State of one thing that the API needs, in a word; words only, because anybody may read them. */
export type ComponentStates = Readonly<Record<string, string>>;

/** What `/readyz` answers from. */
export interface Readiness {
  /** Whether requests should be sent here: all that is needed is there, and the server is not being stopped. */
  readonly ready: boolean;
  readonly draining: boolean;
  readonly components: ComponentStates;
}

/** `/livez` (the process runs) and `/readyz` (it can answer), for load balancers and orchestrators; both without a token. */
export function healthRoutes(readiness: () => Readiness): Router {
  const router = Router();
  router.get('/livez', function livez(_req, res) {
    res.set('Cache-Control', 'no-store').json({ status: 'alive' });
  });
  router.get('/readyz', function readyz(req, res) {
    const { ready, draining, components } = readiness();
    if (ready) {
      res.set('Cache-Control', 'no-store').json({ status: 'ready', components });
      return;
    }
    sendProblem(req, res, {
      status: 503,
      code: draining ? 'draining' : 'not_ready',
      title: 'Not ready',
      detail: draining ? 'The server is being stopped.' : 'Something that the API needs is not available yet.',
      headers: { 'Retry-After': '1' },
      members: { components },
    });
  });
  return router;
}
