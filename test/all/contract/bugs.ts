import type { RequestHandler } from 'express';
import type { Auth } from '../../../src/gate';
import { BUGS_OF_PATHS } from './bugs-of-paths';
import { BUGS_OF_REQUESTS } from './bugs-of-requests';
import { foundBy, LIST, open, sendOrders, unless } from './orders-app';
import type { Bug, Kit, Row } from './orders-app';

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

/** A method that replaces POST, found by what is known of the caller: neither gate nor guard looks at it. */
function overriding(find: (req: Parameters<RequestHandler>[0]) => unknown): Bug {
  const wasPost = (req: Parameters<RequestHandler>[0]) => (req as { wasPost?: boolean }).wasPost === true;
  return {
    first: () => (req, _res, next) => {
      const to = find(req);
      if (typeof to === 'string') Object.assign(req, { method: to, wasPost: true });
      next();
    },
    gate: ({ gate }) => unless(wasPost, gate),
    remove: ({ write }) => [unless(wasPost, write), (_req, res) => void res.sendStatus(204)],
  };
}

/** Headers that a gate trusts. */
const TRUSTED: readonly (readonly [name: string, value: string])[] = [
  // https://github.com/mbailey/voicemode/pull/461: this header with 127.0.0.1 passed the list of addresses
  ['X-Forwarded-For', '127.0.0.1'],
  // https://github.com/rustfs/rustfs/security/advisories/GHSA-fc6g-2gcp-2qrq: conditions on SourceIp
  ['X-Real-IP', '127.0.0.1'],
  // https://github.com/AikidoSec/intel/pull/311: OpenNext, x-isr marked a request as internal
  ['X-Internal', '1'],
  ['X-Debug', '1'],
  // https://github.com/KanishJebaMathewM/Truxify/issues/1798: headers of a bypass for development give an identity
  ['X-Bypass-Auth', '1'],
  // https://github.com/oauth2-proxy/oauth2-proxy/security/advisories/GHSA-5hvv-m4w4-gf6v: that of a health check
  ['User-Agent', 'kube-probe/1.31'],
  // https://github.com/l3montree-dev/devguard/security/advisories/GHSA-2g9v-7mr5-fgjg: X-Admin-Token of anybody
  ['X-Admin', 'true'],
  // https://github.com/pgadmin-org/pgadmin4/issues/10383: a header of the client named the user
  ['X-Forwarded-User', 'admin'],
  // https://github.com/bigduu/Bamboo-agent/issues/199: Host: localhost needed no password
  ['Host', 'localhost'],
  // https://istio.io/news/security/istio-security-2024-006: x-envoy headers from outside were kept
  ['X-Envoy-Internal', 'true'],
  // https://github.com/vercel/next.js/security/advisories/GHSA-f82v-jwr5-mffw
  ['X-Middleware-Subrequest', 'middleware:middleware:middleware:middleware:middleware'],
  // https://bishopfox.com/blog/api-authentication-bypass-in-forticlient-ems-7-4-5-7-4-6-cve-2026-35616
  ['X-SSL-Client-Verify', 'SUCCESS'],
  // https://raw.githubusercontent.com/CVEProject/cvelistV5/main/cves/2025/69xxx/CVE-2025-69985.json: FUXA, instead of a JWT
  ['Referer', 'http://localhost/'],
  // https://github.com/chive-pub/chive/pull/134: X-E2E-Auth-Did, made for tests, was an identity
  ['X-Test', '1'],
];

/** The bugs, by what is wrong. */
export const BUGS: Readonly<Record<string, Row>> = {
  ...BUGS_OF_PATHS,
  ...BUGS_OF_REQUESTS,
  ...foundBy(LIST, 'stays closed to another method', {
    // https://github.com/advisories/GHSA-6439-2f28-8p8q: Symfony, HEAD passes checks that are for GET
    'HEAD is not guarded': open((req) => req.method === 'HEAD'),
  }),
  ...foundBy('DELETE /v1/orders/{id}', 'stays closed to another method', {
    // CVE-2026-42551, https://osv.dev/vulnerability/CVE-2023-30845: ESPv2, X-HTTP-Method-Override instead of a JWT
    'a method that is overridden before the gate looks': overriding((req) => req.headers['x-http-method-override']),
    // https://github.com/flightphp/core/releases/tag/v3.19.1: Flight, CVE-2026-42551, method spoofing by _method
    'a method in the query that is overridden after the gate': overriding((req) =>
      req.method === 'POST' && req.query['_method'] === 'DELETE' ? 'DELETE' : undefined,
    ),
  }),
  ...foundBy(LIST, 'stays closed to headers that proxies and frameworks trust', {
    ...Object.fromEntries(
      TRUSTED.map(([name, value]) => [
        `a gate that trusts ${name}`,
        open((req) => req.headers[name.toLowerCase()] === value),
      ]),
    ),
    // https://github.com/MystenLabs/MemWal/issues/659: a header of the client replaced the scope of its token
    'scopes are taken from a header': {
      list: ({ read }) => [unless((req) => String(req.headers['x-scopes']).includes('orders:read'), read), sendOrders],
    },
    // https://github.com/advisories/GHSA-8wgj-6wx8-h5hq: Symfony, the header replaced the path
    'X-Original-URL decides what the gate checks': open((req) => req.headers['x-original-url'] === '/health'),
  }),
  ...foundBy(LIST, 'takes a token from the Authorization header only', {
    // https://github.com/gogs/gogs/issues/5398: routes of the API took the cookie, so other sites could call them
    'a token in a cookie': tokenFrom((req) => cookieOf(req, 'access_token')),
    // https://github.com/GoLabra/labra/issues/75: the cookie jwt was taken, so other sites could call the API
    'a token in the cookie jwt': tokenFrom((req) => cookieOf(req, 'jwt')),
    'a token in X-Access-Token': tokenFrom((req) => req.headers['x-access-token'] as string | undefined),
    // https://github.com/Kaoruha/GinkGO/issues/5470: ?token= was taken and written to logs
    'a token in another parameter': tokenFrom((req) => req.query['token'] as string | undefined),
  }),
  ...foundBy(LIST, 'takes no scope in another form', {
    // https://github.com/advisories/GHSA-w8fp-g9rh-34jh: scopes are compared by their beginning
    'a scope is found by its beginning': {
      list: scopeGuard((scope) =>
        String(scope)
          .split(' ')
          .some((one) => 'orders:read'.startsWith(one) && one.length > 5),
      ),
    },
    // https://github.com/artifact-keeper/artifact-keeper/issues/1306: a token with * passed every check of scopes
    'a wildcard grants': { list: scopeGuard((scope) => /(^| )(orders:read|orders:\*|\*)( |$)/.test(String(scope))) },
    'commas separate scopes too': { list: scopeGuard((scope) => String(scope).split(/[ ,]/).includes('orders:read')) },
    // https://www.cloudfoundry.org/blog/cve-2019-11279: UAA, scopes in an array passed the check
    'a scope is found in JSON': { list: scopeGuard((scope) => JSON.stringify(scope ?? '').includes('orders:read"')) },
    // https://github.com/sakaiproject/sakai/pull/14710: a part of a scope counted as the scope
    'a scope with anything in front': { list: scopeGuard((scope) => / ?\S*orders:read( |$)/.test(String(scope))) },
    // https://github.com/openclaw/crabbox/pull/64: a claim admin in tokens of users counted
    'an admin role grants': {
      list: ({ read }) => [unless((req) => req.auth?.claims['admin'] === true, read), sendOrders],
    },
  }),
  ...foundBy(LIST, 'stays closed after it was open to another token', {
    // https://github.com/advisories/GHSA-p77w-8qqv-26rm
    'a cache before the gate': {
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
    // https://github.com/advisories/GHSA-rp9m-7r4c-75qg: fast-jwt, one key of the cache for several tokens
    'a memo of tokens by their claims': {
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
    // https://github.com/advisories/GHSA-vfvf-6gx5-mqv6: ORY Oathkeeper, its cache of tokens ignored scopes
    'a memo of scopes by client': {
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
  }),
  ...foundBy(LIST, 'stays closed to other parameters, bodies and media types', {
    // https://gist.github.com/polkaman/d039fb5236a043907e44efc198d9161c: GROWI, any ?access_token=
    'a parameter that switches the guard off': open((req) => req.query['status'] === 'preview'),
    // https://github.com/stacklok/toolhive/pull/6234: a body that is not JSON needed no permission
    'another media type is not guarded': open((req) => req.headers.accept === 'text/csv'),
  }),
  ...foundBy('GET /v1/orders/{id}', 'tells a caller who may not see it nothing', {
    // https://nvd.nist.gov/vuln/detail/cve-2026-73229: Django REST framework, an error page shows what GET refuses
    'a refusal shows what it protects': {
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
  }),
  ...foundBy(LIST, 'tells a caller who may not see it nothing', {
    // https://github.com/TerriaJS/terriajs-server/pull/353: public, for responses to Authorization too
    'a response that any cache may store': {
      list: ({ read }) => [
        read,
        (_req, res) => void res.set('Cache-Control', 'public, max-age=60').json({ orders: [] }),
      ],
    },
    // https://github.com/decocms/studio/issues/3757: any origin was sent back, with credentials
    'any origin with credentials': {
      list: ({ read }) => [
        read,
        (req, res) =>
          void res
            .set('Access-Control-Allow-Origin', req.headers.origin ?? '*')
            .set('Access-Control-Allow-Credentials', 'true')
            .json({ orders: [] }),
      ],
    },
  }),
  ...foundBy('GET /v1/orders/{id}', 'tells a caller who may not see it nothing', {
    // https://github.com/strapi/strapi/issues/762: users were sent with the hash of their password
    'a member that is writeOnly': {
      get: ({ read }) => [read, (_req, res) => void res.json({ id: 'order-one', item: 'Margherita', secretCost: 3 })],
    },
  }),
  ...foundBy('GET /v1/orders/{id}', 'shows and changes only what belongs to the client', {
    // https://github.com/dotnet/eShop/issues/996: orders of other customers by their number
    'an order of another client can be read': {
      get: ({ read }) => [read, (req, res) => void res.json({ id: req.params['id'], item: 'Calzone' })],
    },
  }),
  ...foundBy('DELETE /v1/orders/{id}', 'shows and changes only what belongs to the client', {
    // https://github.com/gitcoinco/web/issues/9742: projects of any other user could be deleted
    'an order of another client can be removed': {
      remove: ({ write }) => [write, (_req, res) => void res.sendStatus(204)],
    },
  }),
  ...foundBy('POST /v1/orders', 'leaves readOnly members as they are', {
    // https://github.com/Gerapy/Gerapy/issues/318: a client was made with the id in the body
    'a caller chooses the id': {
      place: ({ write }) => [
        write,
        (req, res) => void res.status(201).json({ id: 'placed-0', ...(req.body as object) }),
      ],
    },
  }),
  ...foundBy('DELETE /v1/orders/{id}', 'changes nothing when it refuses', {
    // https://raw.githubusercontent.com/CVEProject/cvelistV5/main/cves/2026/73xxx/CVE-2026-73696.json: CWP went on after it refused
    'a write that is refused after it was done': (() => {
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
  }),
};
