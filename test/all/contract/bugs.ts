import type { RequestHandler } from 'express';
import type { Auth } from '../../../src';
import { BUGS_OF_CARRIERS } from './bugs-of-carriers';
import { BUGS_OF_DATA } from './bugs-of-data';
import { BUGS_OF_PATHS } from './bugs-of-paths';
import { open, sendOrders, unless } from './orders-app';
import type { Bug, Kit } from './orders-app';

const METHOD = 'stays closed to another method';
const HEADER = 'stays closed to headers that proxies and frameworks trust';
const PLACE = 'takes a token from the Authorization header only';
const FORM = 'takes no scope in another form';
const AGAIN = 'stays closed after it was open to another token';
const OTHER = 'stays closed to other parameters, bodies and media types';
const TELLS = 'tells a caller who may not see it nothing';
/** The operation that most of them have. */
const LIST = 'GET /v1/orders';

const tokenFrom = (find: (req: Parameters<RequestHandler>[0]) => string | undefined): Bug => ({
  first: () => (req, _res, next) => {
    const token = find(req);
    if (token !== undefined && req.headers.authorization === undefined) {
      req.headers.authorization = `Bearer ${token}`;
      req.rawHeaders.push('Authorization', `Bearer ${token}`);
    }
    next();
  },
});
const cookieOf = (req: Parameters<RequestHandler>[0], name: string): string | undefined =>
  new RegExp(`(?:^|; )${name}=([^;]*)`).exec(req.headers.cookie ?? '')?.[1];
const scopeGuard =
  (holds: (scope: unknown) => boolean): ((kit: Kit) => readonly RequestHandler[]) =>
  () => [
    (req, res, next) => {
      if (holds(req.auth?.claims['scope'])) return next();
      res.set('WWW-Authenticate', 'Bearer error="insufficient_scope", scope="orders:read"');
      res.status(403).type('application/problem+json').json({ status: 403, code: 'insufficient_scope' });
    },
    sendOrders,
  ];

/** By class: the operation that has the bug, the case that finds it, and the bug. */
export const BUGS: Readonly<Record<string, readonly [operation: string, sentence: string, bug: Bug]>> = {
  ...BUGS_OF_DATA,
  ...BUGS_OF_CARRIERS,
  ...BUGS_OF_PATHS,
  'HEAD is not guarded': [LIST, METHOD, open((req) => req.method === 'HEAD')],
  // CVE-2026-42551
  'a method that is overridden before the gate looks': [
    'DELETE /v1/orders/{id}',
    METHOD,
    {
      first: () => (req, _res, next) => {
        const to = req.headers['x-http-method-override'];
        if (typeof to === 'string') {
          (req as { wasPost?: boolean }).wasPost = true;
          req.method = to;
        }
        next();
      },
      gate: ({ gate }) => unless((req) => (req as { wasPost?: boolean }).wasPost === true, gate),
      remove: ({ write }) => [
        unless((req) => (req as { wasPost?: boolean }).wasPost === true, write),
        (_req, res) => void res.sendStatus(204),
      ],
    },
  ],
  'a method in the query that is overridden after the gate': [
    'DELETE /v1/orders/{id}',
    METHOD,
    {
      first: () => (req, _res, next) => {
        if (req.method === 'POST' && req.query['_method'] === 'DELETE') {
          req.method = 'DELETE';
          (req as { wasPost?: boolean }).wasPost = true;
        }
        next();
      },
      gate: ({ gate }) => unless((req) => (req as { wasPost?: boolean }).wasPost === true, gate),
      remove: ({ write }) => [
        unless((req) => (req as { wasPost?: boolean }).wasPost === true, write),
        (_req, res) => void res.sendStatus(204),
      ],
    },
  ],
  ...Object.fromEntries(
    (
      [
        ['X-Forwarded-For', '127.0.0.1'],
        ['X-Real-IP', '127.0.0.1'],
        ['X-Internal', '1'],
        ['X-Debug', '1'],
        ['X-Bypass-Auth', '1'],
        ['User-Agent', 'kube-probe/1.31'],
        ['X-Admin', 'true'],
        ['X-Forwarded-User', 'admin'],
        ['Host', 'localhost'],
        ['X-Envoy-Internal', 'true'],
        // https://github.com/vercel/next.js/security/advisories/GHSA-f82v-jwr5-mffw
        ['X-Middleware-Subrequest', 'middleware:middleware:middleware:middleware:middleware'],
        ['X-SSL-Client-Verify', 'SUCCESS'],
        ['Referer', 'http://localhost/'],
        ['X-Test', '1'],
      ] as const
    ).map(
      ([name, value]) =>
        [
          `a gate that trusts ${name}`,
          [LIST, HEADER, open((req) => req.headers[name.toLowerCase()] === value)],
        ] as const,
    ),
  ),
  'scopes are taken from a header': [
    LIST,
    HEADER,
    {
      list: ({ read }) => [unless((req) => String(req.headers['x-scopes']).includes('orders:read'), read), sendOrders],
    },
  ],
  'X-Original-URL decides what the gate checks': [
    LIST,
    HEADER,
    open((req) => req.headers['x-original-url'] === '/health'),
  ],
  'a token in a cookie': [LIST, PLACE, tokenFrom((req) => cookieOf(req, 'access_token'))],
  'a token in the cookie jwt': [LIST, PLACE, tokenFrom((req) => cookieOf(req, 'jwt'))],
  'a token in X-Access-Token': [LIST, PLACE, tokenFrom((req) => req.headers['x-access-token'] as string | undefined)],
  'a token in another parameter': [LIST, PLACE, tokenFrom((req) => req.query['token'] as string | undefined)],
  // https://github.com/advisories/GHSA-w8fp-g9rh-34jh: scopes are compared by their beginning
  'a scope is found by its beginning': [
    LIST,
    FORM,
    {
      list: scopeGuard((scope) =>
        String(scope)
          .split(' ')
          .some((one) => 'orders:read'.startsWith(one) && one.length > 5),
      ),
    },
  ],
  'a wildcard grants': [
    LIST,
    FORM,
    { list: scopeGuard((scope) => /(^| )(orders:read|orders:\*|\*)( |$)/.test(String(scope))) },
  ],
  'commas separate scopes too': [
    LIST,
    FORM,
    { list: scopeGuard((scope) => String(scope).split(/[ ,]/).includes('orders:read')) },
  ],
  'a scope is found in JSON': [
    LIST,
    FORM,
    { list: scopeGuard((scope) => JSON.stringify(scope ?? '').includes('orders:read"')) },
  ],
  'a scope with anything in front': [
    LIST,
    FORM,
    { list: scopeGuard((scope) => / ?\S*orders:read( |$)/.test(String(scope))) },
  ],
  'an admin role grants': [
    LIST,
    FORM,
    { list: ({ read }) => [unless((req) => req.auth?.claims['admin'] === true, read), sendOrders] },
  ],
  // https://github.com/advisories/GHSA-p77w-8qqv-26rm
  'a cache before the gate': [
    LIST,
    AGAIN,
    {
      first: () => {
        let kept: unknown;
        return (req, res, next) => {
          if (req.originalUrl !== '/v1/orders') return next();
          if (kept !== undefined && req.headers['x-fresh'] === undefined) return void res.json(kept);
          const send = res.json.bind(res);
          res.json = (body: unknown) => {
            if (res.statusCode === 200) kept = body;
            return send(body);
          };
          next();
        };
      },
    },
  ],
  'a memo of tokens by their claims': [
    LIST,
    AGAIN,
    {
      gate: ({ gate }: Kit): RequestHandler => {
        const known = new Map<string, Auth>();
        return (req, res, next) => {
          const key = req.headers.authorization?.split('.').slice(0, 2).join('.') ?? '';
          const auth = known.get(key);
          if (auth) {
            (req as { known?: Auth }).known = auth;
            req.auth = auth;
            return next();
          }
          void gate(req, res, () => {
            if (req.auth) known.set(key, req.auth);
            next();
          });
        };
      },
      list: ({ read }) => [
        unless((req) => (req as { known?: Auth }).known?.scopes.includes('orders:read') === true, read),
        sendOrders,
      ],
    },
  ],
  'a memo of scopes by client': [
    LIST,
    AGAIN,
    {
      list: ({ read }: Kit): readonly RequestHandler[] => {
        const known = new Set<string>();
        return [
          (req, res, next) => {
            if (known.has(req.auth?.clientId ?? '')) return next();
            void read(req, res, () => {
              if (req.auth?.clientId === 'contract-cases-known') known.add(req.auth.clientId);
              next();
            });
          },
          sendOrders,
        ];
      },
    },
  ],
  'a parameter that switches the guard off': [LIST, OTHER, open((req) => req.query['status'] === 'preview')],
  'another media type is not guarded': [LIST, OTHER, open((req) => req.headers.accept === 'text/csv')],
  'a refusal shows what it protects': [
    'GET /v1/orders/{id}',
    TELLS,
    {
      get: ({ read }) => [
        (req, res, next) => {
          const send = res.end.bind(res) as (text: string) => typeof res;
          if (!req.auth?.scopes.includes('orders:read')) {
            res.set('WWW-Authenticate', 'Bearer error="insufficient_scope", scope="orders:read"');
            res.status(403).type('application/problem+json');
            return void send(
              JSON.stringify({ status: 403, code: 'insufficient_scope', order: { item: 'Margherita' } }),
            );
          }
          void read(req, res, next);
        },
        (_req, res) => void res.json({ id: 'order-one', item: 'Margherita' }),
      ],
    },
  ],
  'a response that any cache may store': [
    LIST,
    TELLS,
    {
      list: ({ read }) => [
        read,
        (_req, res) => void res.set('Cache-Control', 'public, max-age=60').json({ orders: [] }),
      ],
    },
  ],
  'any origin with credentials': [
    LIST,
    TELLS,
    {
      list: ({ read }) => [
        read,
        (req, res) =>
          void res
            .set('Access-Control-Allow-Origin', req.headers.origin ?? '*')
            .set('Access-Control-Allow-Credentials', 'true')
            .json({ orders: [] }),
      ],
    },
  ],
  'a member that is writeOnly': [
    'GET /v1/orders/{id}',
    TELLS,
    { get: ({ read }) => [read, (_req, res) => void res.json({ id: 'order-one', item: 'Margherita', secretCost: 3 })] },
  ],
  'an order of another client can be read': [
    'GET /v1/orders/{id}',
    'shows and changes only what belongs to the client',
    { get: ({ read }) => [read, (req, res) => void res.json({ id: req.params['id'], item: 'Calzone' })] },
  ],
  'an order of another client can be removed': [
    'DELETE /v1/orders/{id}',
    'shows and changes only what belongs to the client',
    { remove: ({ write }) => [write, (_req, res) => void res.sendStatus(204)] },
  ],
  'a caller chooses the id': [
    'POST /v1/orders',
    'leaves readOnly members as they are',
    {
      place: ({ write }) => [
        write,
        (req, res) => void res.status(201).json({ id: 'placed-0', ...(req.body as object) }),
      ],
    },
  ],
  'a write that is refused after it was done': [
    'DELETE /v1/orders/{id}',
    'changes nothing when it refuses',
    (() => {
      let removed = 0;
      return {
        get: ({ read }: Kit) => [
          read,
          ((_req, res) => void res.json({ id: 'order-one', item: `removed ${removed}` })) as RequestHandler,
        ],
        remove: ({ write }: Kit) => [
          ((_req, _res, next) => {
            removed++;
            next();
          }) as RequestHandler,
          write,
          ((_req, res) => void res.sendStatus(204)) as RequestHandler,
        ],
      };
    })(),
  ],
};
