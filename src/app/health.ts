import { Router } from 'express';
import { sendProblem } from '../index';

/** State of each component that the API needs, in one word: the response is public. */
export type ComponentStates = Readonly<Record<string, string>>;

/** What `/readyz` responds with. */
export interface Readiness {
  /** Whether requests should be sent here: every component is available, and the server is not stopping. */
  readonly ready: boolean;
  readonly draining: boolean;
  readonly components: ComponentStates;
}

/** `/livez` (the process runs) and `/readyz` (it accepts requests), for load balancers; both without a token. */
export function healthRoutes(readiness: () => Readiness, problemTypes: string): Router {
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
    const code = draining ? 'draining' : 'not_ready';
    sendProblem(req, res, {
      status: 503,
      type: problemTypes + code,
      code,
      title: 'Not ready',
      detail: draining ? 'The server is stopping.' : 'Something that the API needs is not available yet.',
      headers: { 'Retry-After': '1' },
      members: { components },
    });
  });
  return router;
}
