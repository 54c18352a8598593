import express from 'express';
import type { RequestHandler } from 'express';
import type { Bug } from './orders-app';

const METHOD = 'stays closed to another method';
const REMOVE = 'DELETE /v1/orders/{id}';

/** Bugs of gates and guards that read a body differently. */
export const BUGS_OF_REQUESTS: Readonly<Record<string, readonly [operation: string, sentence: string, bug: Bug]>> = {
  // https://gist.github.com/evilpacket/c1476f55138830d8b0c83b12f3670647: Connect, _method counted after the check
  'a method in a form that is overridden after the gate': [REMOVE, METHOD, overriddenBy(express.urlencoded())],
  // https://gist.github.com/evilpacket/c1476f55138830d8b0c83b12f3670647: Connect, _method counted after the check
  'a method in a JSON body that is overridden after the gate': [REMOVE, METHOD, overriddenBy(express.json())],
  // OWASP API5: the guard looks for what it protects in an object only
  // https://github.com/stacklok/toolhive/pull/5931: calls in a JSON-RPC list were not checked
  'a list whose parts are not guarded': [
    'POST /v1/orders',
    'stays closed to other parameters, bodies and media types',
    {
      place: ({ write }) => [
        (req, res, next) => (Array.isArray(req.body) && req.body.length > 1 ? next() : void write(req, res, next)),
        (_req, res) => void res.status(201).json({ id: 'placed-1', item: 'Calzone' }),
      ],
    },
  ],
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
