import express from 'express';
import type { RequestHandler } from 'express';
import { requireScope } from '../../../src';
import { carry, ORDER } from './orders-app';
import type { Bug } from './orders-app';

const INSIDE = 'is not reached inside another request';
const CARRIER = 'stays closed to upgrades, lists and a method in the body';
const LIST = 'GET /v1/orders';
const REMOVE = 'DELETE /v1/orders/{id}';

const ALL = ['orders:read'];
const mayBatch = requireScope('orders:batch') as RequestHandler;
const itemsOf = (body: unknown): readonly unknown[] =>
  [(body as { requests?: unknown } | undefined)?.requests ?? []].flat();

/** An order that says how often it was removed, so that a removal shows. */
function counted(): Required<Pick<Bug, 'get'>> & { readonly remove: () => void } {
  let removed = 0;
  return {
    remove: () => void removed++,
    get: ({ read }) => [read, (_req, res) => void res.json({ id: 'order-one', item: `removed ${removed}` })],
  };
}

/** Bugs of requests that carry others; those of `upgrades` need a server. */
export const BUGS_OF_CARRIERS: Readonly<Record<string, readonly [operation: string, sentence: string, bug: Bug]>> = {
  // Parse Server: routes are checked for the outer request only
  // https://github.com/parse-community/parse-server/security/advisories/GHSA-p84r-h6rx-f2xr
  'a batch whose requests need no scope': [
    LIST,
    INSIDE,
    {
      batch: () => [
        mayBatch,
        (req, res) => void res.json({ responses: itemsOf(req.body).map((one) => carry(one, ALL)) }),
      ],
    },
  ],
  // https://github.com/goshs-labs/goshs/security/advisories/GHSA-rmxw-pq4x-3fvh: ?bulk read files without their check
  'a batch that the document lacks': [
    LIST,
    INSIDE,
    {
      before: ({ app }) =>
        void app.post('/batch', express.json(), (req, res) => {
          res.json([req.body as unknown].flat().map((one) => carry(one, ALL)));
        }),
    },
  ],
  // CVE-2026-42551, https://github.com/flightphp/core/releases/tag/v3.19.1: a parameter _method counts
  'a batch that takes the method from _method': [
    REMOVE,
    INSIDE,
    (() => {
      const { get, remove } = counted();
      const batch: RequestHandler = (req, res) => {
        const removals = itemsOf(req.body).filter((one) => (one as { _method?: unknown })._method === 'DELETE');
        removals.forEach(remove);
        res.json({ responses: removals.map(() => ({ status: 204 })) });
      };
      return { get, batch: () => [mayBatch, batch] };
    })(),
  ],
  // https://gist.github.com/evilpacket/c1476f55138830d8b0c83b12f3670647: Connect, _method counted after the check
  'a method in a form that is overridden after the gate': [REMOVE, CARRIER, overriddenBy(express.urlencoded())],
  // https://gist.github.com/evilpacket/c1476f55138830d8b0c83b12f3670647: Connect, _method counted after the check
  'a method in a JSON body that is overridden after the gate': [REMOVE, CARRIER, overriddenBy(express.json())],
  // OWASP API5: the guard looks for what it protects in an object only
  // https://github.com/stacklok/toolhive/pull/5931: calls in a JSON-RPC list were not checked
  'a list whose parts are not guarded': [
    'POST /v1/orders',
    CARRIER,
    {
      place: ({ write }) => [
        (req, res, next) => (Array.isArray(req.body) && req.body.length > 1 ? next() : void write(req, res, next)),
        (_req, res) => void res.status(201).json({ id: 'placed-1', item: 'Calzone' }),
      ],
    },
  ],
  // https://github.com/fastify/fastify-bearer-auth/issues/48: a socket ignores any authentication
  'a gate that leaves upgrades to the socket': [
    LIST,
    CARRIER,
    {
      gate:
        ({ gate }) =>
        (req, res, next) =>
          req.headers.connection === 'Upgrade' ? next() : void gate(req, res, next),
      list: ({ read }) => [
        (req, res, next) => (req.headers.connection === 'Upgrade' ? next() : void read(req, res, next)),
        (_req, res) => void res.json({ orders: [ORDER], total: 'forty-two' }),
      ],
    },
  ],
  // Marimo: one socket of several asks for no token
  // https://github.com/marimo-team/marimo/security/advisories/GHSA-2679-6mx9-h9xc
  'a socket for anybody': [LIST, CARRIER, { upgrades: ({ url }) => url === '/v1/orders' }],
  // https://github.com/jonwiggins/optio/issues/301: each socket has to check for itself
  'a socket for any token': [
    LIST,
    CARRIER,
    { upgrades: ({ url, headers }) => url === '/v1/orders' && headers.authorization !== undefined },
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
