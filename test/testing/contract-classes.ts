import { createHmac, createPublicKey, verify, X509Certificate } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import express from 'express';
import type { Express, Request, RequestHandler, Response } from 'express';
import { authenticate, requireScope } from '../../src/gate';
import type { Auth } from '../../src/gate';
import type { CaseClass, TestIssuer } from '../../src/testing';

/** A mistake in an app that is right otherwise: what replaces its parts. */
interface Mistake {
  /** Runs before the gate. */
  readonly first?: RequestHandler;
  readonly gate?: (issuer: TestIssuer, gate: RequestHandler) => RequestHandler;
  readonly guard?: (guard: RequestHandler) => RequestHandler;
  readonly send?: (req: Request, res: Response) => unknown;
}

const LEVELS = { levels: [{ sku: 'flour-25kg', onHand: 4711 }] };

/** Stock levels: one list, and one entry of it. */
export function stockApp(issuer: TestIssuer, { first, gate, guard, send }: Mistake = {}): Express {
  const app = express();
  const own = authenticate(issuer.options) as RequestHandler;
  const read = requireScope('stock.read') as RequestHandler;
  app.use(express.json(), express.urlencoded());
  if (first) app.use(first);
  app.use(gate?.(issuer, own) ?? own);
  app.get('/levels', guard?.(read) ?? read, (req, res) => {
    res.set('X-Total-Count', '4711');
    if (send) send(req, res);
    else res.json(LEVELS);
  });
  return app;
}

/** The document of the app. */
export const STOCK_DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Stock', version: '1' },
  paths: {
    '/levels': {
      get: {
        security: [{ oauth: ['stock.read'] }],
        parameters: [
          { name: 'X-Warehouse', in: 'header', schema: { enum: ['north', 'south'] } },
          { name: 'below', in: 'query', schema: { type: 'integer' } },
        ],
        responses: { 200: { description: 'Levels' }, '4XX': { description: 'Refused' } },
      },
    },
  },
  components: {
    securitySchemes: {
      oauth: {
        type: 'oauth2',
        flows: { clientCredentials: { tokenUrl: '/t', scopes: { 'stock.read': '', 'stock.write': '' } } },
      },
    },
  },
};

const asTill = (req: Request, scopes: readonly string[] = ['stock.read']): void => {
  req.auth = { clientId: 'till', scopes, claims: {} } as unknown as Auth;
};
/** Lets a request pass without its gate or guard. */
const unless =
  (condition: (req: Request) => boolean) =>
  (guard: RequestHandler): RequestHandler =>
  (req, res, next) => {
    if (!condition(req)) return void guard(req, res, next);
    asTill(req);
    next();
  };
const openTo = (condition: (req: Request) => boolean): Mistake => ({
  gate: (_issuer, gate) => unless(condition)(gate),
  guard: unless(condition),
});
const decode = (part = ''): Record<string, unknown> =>
  JSON.parse(Buffer.from(part, 'base64url').toString() || '{}') as Record<string, unknown>;
const partsOf = (req: Request): readonly string[] => (req.headers.authorization ?? '').split(' ')[1]?.split('.') ?? [];
/** A token that is good, as the app's own issuer says: the place is the mistake. */
const isGood = (token: string | undefined): boolean => decode(token?.split('.')[1])['scope'] === 'stock.read';
const cookie = (req: Request, name: string): string | undefined =>
  new RegExp(`(?:^|; )${name}=([^;]+)`).exec(req.headers.cookie ?? '')?.[1];
/** A guard that finds its scope in the claims in a way of its own. */
const finds = (isEnough: (claims: Readonly<Record<string, unknown>>) => boolean): Mistake => ({
  guard: (guard) => (req, res, next) => (isEnough(req.auth?.claims ?? {}) ? next() : void guard(req, res, next)),
});
const refusing =
  (change: (res: Response) => void): NonNullable<Mistake['guard']> =>
  (guard) =>
  (req, res, next) => {
    if (req.auth?.scopes.includes('stock.read')) return next();
    change(res);
    void guard(req, res, next);
  };
/** What a gate remembers lasts as long as the app. */
let lastScopes: readonly string[] = [];

/** Whether a token is signed by a key that it brings itself. */
function isSignedBy(req: Request, key: KeyObject | undefined): boolean {
  const [head, payload, signature = ''] = partsOf(req);
  if (!key) return false;
  const input = Buffer.from(`${head}.${payload}`);
  return verify('sha256', input, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));
}
/** As `openTo()`, where it takes time to know. */
const openIf = (condition: (req: Request, issuer: TestIssuer) => Promise<boolean>): Mistake => {
  const opened = new WeakSet<Request>();
  return {
    gate: (issuer, gate) => async (req, res, next) => {
      if (!(await condition(req, issuer).catch(() => false))) return void gate(req, res, next);
      opened.add(req);
      asTill(req);
      next();
    },
    guard: unless((req) => opened.has(req)),
  };
};
const jkuOf = (req: Request): string => (decode(partsOf(req)[0]) as { jku?: string }).jku ?? '';
async function keysOf(req: Request): Promise<readonly JsonWebKey[]> {
  const url = jkuOf(req);
  if (url === '') return [];
  return ((await (await fetch(url)).json()) as { keys: readonly JsonWebKey[] }).keys;
}
const isSignedByAny = (req: Request, keys: readonly JsonWebKey[]): boolean =>
  keys.some((key) => isSignedBy(req, createPublicKey({ key, format: 'jwk' })));
const certificateOf = (req: Request): string | undefined =>
  (decode(partsOf(req)[0]) as { x5c?: readonly string[] }).x5c?.[0];

/** A gate that takes what it has once taken, by a part of the token. */
function remembering(partOf: (req: Request) => unknown): Mistake {
  const taken = new Set<unknown>();
  const isTaken = (req: Request): boolean => partOf(req) !== undefined && taken.has(partOf(req));
  return {
    gate: (_issuer, gate) => (req, res, next) => {
      const part = partOf(req);
      if (isTaken(req)) {
        asTill(req);
        return next();
      }
      void gate(req, res, () => {
        if (req.auth?.scopes.includes('stock.read')) taken.add(part);
        next();
      });
    },
    guard: unless(isTaken),
  };
}

/** More mistakes about keys: three shapes each for what a token brings, and for a key that was removed. */
export const KEY_MISTAKES: Readonly<Record<string, Mistake>> = {
  'verifies with the certificate that the token brings': openTo((req) => {
    const text = certificateOf(req);
    return isSignedBy(req, text ? new X509Certificate(Buffer.from(text, 'base64')).publicKey : undefined);
  }),
  'asks of a certificate only whether its time is over': openTo((req) => {
    const found = certificateOf(req);
    const certificate = found ? new X509Certificate(Buffer.from(found, 'base64')) : undefined;
    return Date.parse(certificate?.validTo ?? '') > Date.now() && isSignedBy(req, certificate?.publicKey);
  }),
  'writes the certificate of a token into a file of keys': openTo((req) => {
    const text = certificateOf(req);
    const pem = `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----`;
    return isSignedBy(req, text ? createPublicKey(pem) : undefined);
  }),
  'verifies with the keys at the URL that the token names': openIf(async (req) =>
    isSignedByAny(req, await keysOf(req)),
  ),
  'takes a URL for that of its issuer where it contains it': openIf(async (req, issuer) =>
    jkuOf(req).includes(issuer.issuer) ? isSignedByAny(req, await keysOf(req)) : false,
  ),
  'reads the keys that a token without a key id names': openIf(async (req) => {
    const { kid } = decode(partsOf(req)[0]);
    return kid === undefined && isSignedByAny(req, await keysOf(req));
  }),
  'keeps good tokens whole': remembering((req) => req.headers.authorization),
  'keeps the signatures of good tokens': remembering((req) => partsOf(req)[2]),
  'keeps what a good token says': remembering((req) => partsOf(req)[1]),
};

/** Three shapes for each class of cases. */
export const MISTAKES: Readonly<Partial<Record<CaseClass, Readonly<Record<string, Mistake>>>>> = {
  token: {
    'verifies with the key that the token brings': openTo((req) => {
      const { jwk } = decode(partsOf(req)[0]) as { jwk?: JsonWebKey };
      return isSignedBy(req, jwk && createPublicKey({ key: jwk, format: 'jwk' }));
    }),
    'takes r = s = 0 for a signature': openTo((req) =>
      Buffer.from(partsOf(req)[2] ?? '', 'base64url').equals(Buffer.alloc(64)),
    ),
    'was deployed with the secret of the example': openTo((req) => {
      const [head, payload, signature] = partsOf(req);
      const made = createHmac('sha256', 'changeme').update(`${head}.${payload}`).digest('base64url');
      return made === signature;
    }),
  },
  scope: {
    'takes dots and dashes for the same': finds(({ scope }) =>
      String(scope).replaceAll('-', '.').split(' ').includes('stock.read'),
    ),
    'takes the plural for the singular': finds(({ scope }) =>
      /(^| )stocks?[.:]reads?( |$)/.test(String(scope).replaceAll(':', '.')),
    ),
    'cuts what follows the scope': finds(({ scope }) => / ?stock\.read:( |$)/.test(String(scope))),
  },
  form: {
    'flattens lists in lists': finds(
      ({ scope }) => [scope].flat(3).length === 1 && String(scope) === 'stock.read' && typeof scope !== 'string',
    ),
    'takes the scope of the actor': finds(({ act }) => (act as { scope?: string } | undefined)?.scope === 'stock.read'),
    'takes roles at any API': finds(({ resource_access: access = {} }) =>
      JSON.stringify(access).includes('"stock.read"'),
    ),
  },
  transport: {
    'takes an assertion in a form': openTo(({ body }) =>
      isGood((body as { assertion?: string } | undefined)?.assertion),
    ),
    'reads scopes from a cookie beside the token': { guard: unless((req) => isGood(cookie(req, 'id_token'))) },
    'takes the user of Basic credentials for a token': openTo((req) => {
      const [scheme, text = ''] = (req.headers.authorization ?? '').split(' ');
      return scheme === 'Basic' && isGood(Buffer.from(text, 'base64').toString().split(':')[0]);
    }),
  },
  variant: {
    'has a full view for its own page': openTo((req) => req.query['view'] === 'full'),
    'trusts one warehouse': openTo((req) => req.headers['x-warehouse'] === 'south'),
    'prepares a representation first': openTo((req) => req.headers['prefer'] === 'return=representation'),
  },
  state: {
    'keeps tokens by their id': remembering((req) => decode(partsOf(req)[1])['jti']),
    'keeps the scopes of the last token in a variable of the module': {
      gate: (_issuer, gate) => (req, res, next) =>
        void gate(req, res, () => {
          lastScopes = req.auth?.scopes ?? [];
          next();
        }),
      guard: (guard) => async (req, res, next) => {
        await wait(5);
        if (lastScopes.includes('stock.read')) next();
        else void guard(req, res, next);
      },
    },
    'starts a session with the first good token': {
      ...openTo((req) => cookie(req, 'sid') === 'till-session'),
      send: (_req, res) => res.cookie('sid', 'till-session').json(LEVELS),
    },
  },
  leak: {
    'puts a stack into its refusal': {
      guard: refusing(
        (res) =>
          void res
            .status(403)
            .set('WWW-Authenticate', 'Bearer')
            .json({ stack: new Error('no').stack }),
      ),
    },
    'counts what it hides': { guard: refusing((res) => void res.set('X-Total-Count', '4711')) },
    'lets the network of its host keep it': {
      send: (_req, res) => res.set('Surrogate-Control', 'max-age=3600').json(LEVELS),
    },
  },
};
