import express from 'express';
import type { RequestHandler } from 'express';
import { foundBy } from './orders-app';
import type { Bug } from './orders-app';

/** Bugs of gates and guards that read a body differently. */
export const BUGS_OF_REQUESTS = {
  // https://gist.github.com/evilpacket/c1476f55138830d8b0c83b12f3670647: Connect, _method counted after the check
  ...foundBy('DELETE /v1/orders/{id}', 'stays closed to another method', {
    'a method in a form that is overridden after the gate': overriddenBy(express.urlencoded()),
    'a method in a JSON body that is overridden after the gate': overriddenBy(express.json()),
  }),
  // OWASP API5: the guard looks for what it protects in an object only
  // https://github.com/stacklok/toolhive/pull/5931: calls in a JSON-RPC list were not checked
  ...foundBy('POST /v1/orders', 'stays closed to other parameters, bodies and media types', {
    'a list whose parts are not guarded': {
      place: ({ write }) => [
        (req, res, next) => (Array.isArray(req.body) && req.body.length > 1 ? next() : void write(req, res, next)),
        (_req, res) => void res.status(201).json({ id: 'placed-1', item: 'Calzone' }),
      ],
    },
  }),
};

function overriddenBy(parser: RequestHandler): Bug {
  return {
    first: () => (req, res, next) => {
      if (req.method !== 'POST' || !req.path.startsWith('/v1/orders/')) return next();
      parser(req, res, () => {
        if ((req.body as { _method?: unknown } | undefined)?._method === 'DELETE') req.method = 'DELETE';
        (req as { wasPost?: boolean }).wasPost = true;
        next();
      });
    },
    gate:
      ({ gate }) =>
      (req, res, next) =>
        (req as { wasPost?: boolean }).wasPost === true ? next() : void gate(req, res, next),
    remove: ({ write }) => [
      (req, res, next) => ((req as { wasPost?: boolean }).wasPost === true ? next() : void write(req, res, next)),
      (_req, res) => void res.sendStatus(204),
    ],
  };
}
