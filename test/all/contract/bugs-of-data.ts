import type { RequestHandler } from 'express';
import { sendOrders } from './orders-app';
import type { Bug, Kit } from './orders-app';

/** Bugs that show one caller what is another's. */
export const BUGS_OF_DATA: Readonly<Record<string, readonly [operation: string, sentence: string, bug: Bug]>> = {
  // OWASP API1: the tenant comes from a header that any caller can set
  // https://github.com/bigcapitalhq/bigcapital/security/advisories/GHSA-2g96-86rw-qmvg: organization-id
  'a tenant of a header': [
    'GET /v1/orders',
    'shows the same whatever tenant a header names',
    {
      list: ({ read }) => [
        read,
        (req, res, next) =>
          req.get('x-store-id') === undefined ? sendOrders(req, res, next) : res.json({ orders: [] }),
      ],
    },
  ],
  // OWASP API1: responses are kept by the key alone
  // https://github.com/arun0009/idempotent/pull/217: another user with the same key got the stored response
  'an idempotency key that all clients share': [
    'POST /v1/orders',
    'repeats no response to another client',
    {
      place({ write }: Kit): readonly RequestHandler[] {
        const kept = new Map<string, object>();
        return [
          write,
          (req, res) => {
            const key = req.get('idempotency-key') ?? String(kept.size);
            const made = kept.get(key) ?? { id: `made-${kept.size}`, item: 'Calzone' };
            kept.set(key, made);
            res.status(201).json(made);
          },
        ];
      },
    },
  ],
};
