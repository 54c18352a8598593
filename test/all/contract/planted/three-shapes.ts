import { bearerOf, decode, HANDLERS, isOf, NOT_FOUND, verifyRight, wrongIn } from './parcels';
import { ANYBODY, allows, attempt, found, judges, namesKeys, partsOf, refuses, skip, takes } from './planting';
import type { Table } from './planting';

/** Three shapes of each class that was missed once. */
export const IN_THREE_SHAPES: Table = {
  'scope that begins another: startsWith': found('scope', () =>
    allows((scopes, need) => scopes.some((one) => one.startsWith(need))),
  ),
  'scope that begins another: includes': found('scope', () =>
    allows((scopes, need) => scopes.join(' ').includes(need)),
  ),
  'scope that begins another: by its first part': found('scope', () =>
    allows((scopes, need) => scopes.some((one) => one.split('.')[0] === need.split('.')[0])),
  ),
  'validation before a guard that is missing': found('token', () => ({
    isOpen: (_call, name) => name === 'make',
    handlers: {
      make: (call, server) => wrongIn(call.body) ?? HANDLERS['make']?.(call, server, 'anybody') ?? NOT_FOUND,
    },
  })),
  'validation with 422 before a guard that takes any token': found('token', () => ({
    verify: (token, issuer, { path, method }) =>
      verifyRight(token, issuer) ?? (method === 'POST' && path === '/v1/parcels' ? ANYBODY : undefined),
  })),
  'a bad token is a 422 like a bad body': found('token', () => (usual) => ({
    refuse: (status, scope, call, server) =>
      call.method === 'POST' && status === 401
        ? { status: 422, body: { error: 'invalid' } }
        : usual(status, scope, call, server),
  })),
  'payload null needs no signature': found('token', () => ({
    verify: (token, issuer) =>
      attempt(() => decode(token.split('.')[1])) === null ? ANYBODY : verifyRight(token, issuer),
  })),
  'payload that is no JSON is taken for a key of the shop': found('token', () => ({
    verify: (token, issuer) =>
      attempt(() => partsOf(token)) === undefined && token.includes('.') ? ANYBODY : verifyRight(token, issuer),
  })),
  'payload without members is nobody, who may': found('token', () => ({
    verify(token, issuer) {
      const claims: unknown = attempt(() => decode(token.split('.')[1]));
      return Array.isArray(claims) && claims.length === 0 ? ANYBODY : verifyRight(token, issuer);
    },
  })),
  'exp by hand: an hour of leeway': found('token', () =>
    judges(
      (claims, issuer) =>
        isOf(issuer, claims) &&
        Number(claims.exp) > Date.now() / 1000 - 3600 &&
        Number(claims.nbf ?? 0) < Date.now() / 1000,
    ),
  ),
  'exp by hand: texts are not compared': found('token', () =>
    judges(
      (claims, issuer) => isOf(issuer, claims) && !(typeof claims.exp === 'number' && claims.exp < Date.now() / 1000),
    ),
  ),
  'exp by hand: as milliseconds': found('token', () =>
    judges(
      (claims, issuer) =>
        isOf(issuer, claims) &&
        Number(claims.exp) * 1000 > Date.now() - 3 * 60_000 &&
        Number(claims.nbf ?? 0) * 1000 < Date.now(),
    ),
  ),
  'scheme in other letters: no gate for it': found('token', () =>
    skip(({ headers }) => /^bearer /.test(headers['authorization'] ?? '')),
  ),
  'scheme in other letters: nothing is verified': found('token', () =>
    takes((_token, _head, _claims, { headers }) => /^BEARER /.test(headers['authorization'] ?? '')),
  ),
  'scheme in other letters: is that of a session': found('token', () => ({
    tokenOf: bearerOf,
    first: ({ headers }) => {
      const [scheme = ''] = (headers['authorization'] ?? '').split(' ');
      return scheme !== 'Bearer' && scheme.toLowerCase() === 'bearer'
        ? { status: 200, body: { rates: ['DE-North-4711'] } }
        : undefined;
    },
  })),
  'trailing slash: the gate compares whole paths': found('spelling', () => skip(({ path }) => path.endsWith('/'))),
  'trailing slash: a folder needs no token': found('spelling', () => ({
    first: ({ path }) =>
      /^\/v1\/rates\/$/.test(path)
        ? { status: 200, body: { rates: [{ zone: 'DE-North-4711', cents: 499 }] } }
        : undefined,
  })),
  'dot segment: the gate looks at the raw path': found('spelling', () => ({
    first: (call, server) =>
      /\/\.\.?\//.test(call.url) && /rates$/.test(call.path) ? HANDLERS['rates']?.(call, server, '') : undefined,
  })),
  'HTML for browsers: a page with the data': found('variant', () => ({
    first: ({ headers, path }) =>
      /text\/html/.test(headers['accept'] ?? '') && path === '/v1/rates'
        ? { status: 200, body: '<li>DE-North-4711: 499</li>' }
        : undefined,
  })),
  'HTML for browsers: no gate': found('variant', () => skip(({ headers }) => /html/.test(headers['accept'] ?? ''))),
  'HTML for browsers: the refusal has the data': found('variant', () =>
    refuses((usual, _status, _scope, { headers, path }) =>
      /html/.test(headers['accept'] ?? '') && path === '/v1/rates'
        ? { ...usual, headers: {}, body: '<p>Sign in to see DE-North-4711</p>' }
        : usual,
    ),
  ),
  'jku: the key set that a token names': found('token', () => namesKeys(({ jku }) => jku)),
  'jku: where no key of its own is named': found('token', () =>
    namesKeys(({ jku, kid }) => (kid === undefined ? jku : undefined)),
  ),
  'jku: x5u': found('token', () => namesKeys(({ x5u }) => x5u)),
  'Location: a signed link for nobody': found('token', () =>
    refuses((usual, _status, _scope, { path }) =>
      path === '/v1/ticket'
        ? { status: 302, headers: { location: '/files/ticket-8412-9930.pdf?signature=b7c1d9e0' } }
        : usual,
    ),
  ),
  'Location: next to a 401': found('leak', () =>
    refuses((usual, _status, _scope, { path }) =>
      path === '/v1/rates' ? { ...usual, headers: { ...usual.headers, location: '/login?zone=DE-North-4711' } } : usual,
    ),
  ),
  'Location: the login page gets the data': found('scope', () =>
    refuses((usual, status, _scope, { path }) =>
      path === '/v1/rates' && status === 403
        ? { status: 303, headers: { location: '/upgrade?zone=DE-North-4711' } }
        : usual,
    ),
  ),
};
