import type { JsonWebKey } from 'node:crypto';
import { bearerOf, HANDLERS, isOf, isSigned, isTimely, keyOf, NOT_FOUND, scopesOf, verifyRight } from './parcels';
import type { Reply } from './parcels';
import {
  ANYBODY,
  allows,
  attempt,
  found,
  handles,
  isGood,
  judges,
  members,
  partsOf,
  refuses,
  skip,
  takes,
} from './planting';
import type { Table } from './planting';

/** What goes wrong in gates, guards, caches and refusals. */
export const USUAL: Table = {
  'an unknown id without a token is a 404': found('token', () =>
    refuses((usual, status, _scope, { path }, { store }) => {
      const id = path.split('/')[3];
      return status === 401 && id !== undefined && !store.parcels.has(id) ? NOT_FOUND : usual;
    }),
  ),
  'a parameter sent twice skips the scope': found('variant', () => ({
    isOpen: ({ query }) => query.getAll('sort').length > 1,
  })),
  'readOnly is written': found('property', () =>
    handles('make', (usual, { body }) => {
      const { checked } = (body ?? {}) as { checked?: unknown };
      return usual.status === 201 && checked !== undefined ? { ...usual, body: { ...members(usual), checked } } : usual;
    }),
  ),
  'writeOnly is in the response to a POST': found('leak', () =>
    handles('make', (usual) =>
      usual.status === 201 ? { ...usual, body: { ...members(usual), secret: 's3' } } : usual,
    ),
  ),
  'a refusal has a stack': found('leak', () =>
    refuses((usual, status) =>
      status === 403
        ? {
            ...usual,
            headers: { ...usual.headers, 'content-type': 'application/json' },
            body: { error: new Error('no').stack },
          }
        : usual,
    ),
  ),
  'a refusal has the token': found('leak', () =>
    refuses((usual, _status, _scope, { headers }) => ({
      ...usual,
      headers: { ...usual.headers, 'content-type': 'application/json' },
      body: { got: headers['authorization'] },
    })),
  ),
  'a refusal has the total': found('leak', () =>
    refuses((usual, status, _scope, { path }) =>
      path === '/v1/rates' && status === 403
        ? {
            ...usual,
            headers: { ...usual.headers, 'content-type': 'application/json' },
            body: { hidden: { zone: 'DE-North-4711' } },
          }
        : usual,
    ),
  ),
  'a key that is not known needs no signature': found('token', () => ({
    verify(token, issuer) {
      const { alg, kid } = attempt(() => partsOf(token)[0]) ?? {};
      if (alg !== 'ES256' || kid === undefined || keyOf(issuer, kid)) return verifyRight(token, issuer);
      const [, claims] = partsOf(token);
      return isOf(issuer, claims) && isTimely(claims) ? claims : undefined;
    },
  })),
  'a scope in the query': found('variant', () =>
    allows((scopes, need, _claims, { query }) => [...scopes, ...(query.get('scope') ?? '').split(' ')].includes(need)),
  ),
  'a scope in the body': found('variant', () =>
    allows((scopes, need, _claims, { body }) =>
      [...scopes, ...String((body as { scope?: unknown } | undefined)?.scope).split(' ')].includes(need),
    ),
  ),
  'a forwarded OPTIONS needs no token': found('header', () =>
    skip(({ headers }) => headers['x-forwarded-method'] === 'OPTIONS'),
  ),
  'a list where a parameter has one value': found('variant', () => skip(({ query }) => query.has('sort[]'))),
  'a header of a refusal has a line of the code': found('leak', () =>
    refuses((usual) => ({ ...usual, headers: { ...usual.headers, 'x-debug': 'at verify (/srv/app/auth.js:14:7)' } })),
  ),
  'one route has no guard': found('token', () => skip((_call, name) => name === 'rates')),
  'one route has no scope': found('scope', () => ({
    allows: (claims, scope, { path }) => path === '/v1/rates' || scopesOf(claims).includes(scope),
  })),
  'one route has the scope of reading': found('scope', () =>
    allows((scopes, need, _claims, { method }) => scopes.includes(method === 'PATCH' ? 'parcels.read' : need)),
  ),
  'HEAD is not guarded': found('method', () => ({
    first: ({ method, path }) =>
      method === 'HEAD' && path === '/v1/rates' ? { status: 200, headers: { 'x-total-count': '3' } } : undefined,
  })),
  'OPTIONS shows the data': found('method', () => ({
    first: ({ method, path }) =>
      method === 'OPTIONS' && path === '/v1/rates'
        ? { status: 200, body: { rates: [{ zone: 'DE-North-4711' }] } }
        : undefined,
  })),
  'alg none': found('token', () => takes((_token, { alg }) => String(alg).toLowerCase() === 'none')),
  'the signature is not verified': found('token', () => takes((_token, _head, claims) => isTimely(claims))),
  'the audience is not compared': found('token', () =>
    judges((claims, issuer) => claims.iss === issuer.issuer && isTimely(claims)),
  ),
  'the issuer is compared by its beginning': found('token', () =>
    judges(
      (claims, issuer) =>
        String(claims.iss).startsWith(issuer.issuer) &&
        isOf(issuer, { ...claims, iss: issuer.issuer }) &&
        isTimely(claims),
    ),
  ),
  'a key in the token': found('token', () =>
    takes((token, { jwk }) => jwk !== undefined && isSigned(token, jwk as JsonWebKey)),
  ),
  'a token in a cookie': found('transport', () => ({
    tokenOf: (call) => bearerOf(call) ?? /(?:^|; )token=([^;]+)/.exec(call.headers['cookie'] ?? '')?.[1],
  })),
  'a token in the query': found('transport', () => ({
    tokenOf: (call) => bearerOf(call) ?? call.query.get('jwt') ?? undefined,
  })),
  'a header names the user': found('header', () => skip(({ headers }) => headers['x-forwarded-user'] !== undefined)),
  'a debug parameter': found('variant', () => skip(({ query }) => query.get('debug') === 'true')),
  'a scope in a list of lists': found('form', () =>
    allows((scopes, need, { scope }) => scopes.includes(need) || JSON.stringify(scope ?? '').includes(`["${need}"`)),
  ),
  'a role of any kind': found('form', () =>
    allows((scopes, need, { role }) => scopes.includes(need) || role === 'admin'),
  ),
  'a cache before the gate': found('state', () => {
    let kept: Reply | undefined;
    return {
      first: ({ path, method }) => (path === '/v1/rates' && method === 'GET' ? kept : undefined),
      handlers: { rates: (...rest) => (kept = HANDLERS['rates']?.(...rest) ?? NOT_FOUND) },
    };
  }),
  'a memo by the id of a token': found('state', () => {
    const known = new Set<unknown>();
    return {
      verify(token, issuer) {
        const [, claims] = attempt(() => partsOf(token)) ?? [{}, {}];
        const right = verifyRight(token, issuer);
        if (right && isGood(token)) known.add(right['jti']);
        return right ?? (known.has(claims['jti']) ? ANYBODY : undefined);
      },
    };
  }),
  'a stack in a 500 for a malformed token': found('token', () => ({
    verify(token, issuer) {
      if (token.split('.').length < 3) throw new Error('jwt malformed');
      return verifyRight(token, issuer);
    },
  })),
};
