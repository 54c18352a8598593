import type { IRouter, RequestHandler } from 'express';
import { RefusedRequest } from './refused-request';

/** The handlers of one address by method. */
export type Methods = Readonly<Partial<Record<'get' | 'post' | 'patch' | 'delete', RequestHandler>>>;

/** Serves an address; every other method is answered 405 with `Allow` (RFC 9110 section 15.5.6). */
export function serve(router: IRouter, path: string, methods: Methods): void {
  const route = router.route(path);
  if (methods.get) route.get(methods.get);
  if (methods.post) route.post(methods.post);
  if (methods.patch) route.patch(methods.patch);
  if (methods.delete) route.delete(methods.delete);
  const allowed = Object.keys(methods).map((name) => name.toUpperCase());
  // Express answers HEAD where there is GET (RFC 9110 section 9.3.2).
  const allow = allowed.flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : [name])).join(', ');
  route.all(function refuseMethod(req) {
    throw new RefusedRequest({
      status: 405,
      code: 'method_not_allowed',
      detail: `This address takes ${allow}; got ${req.method}.`,
      headers: { Allow: allow },
    });
  });
}
