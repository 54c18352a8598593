import type { RequestHandler, Response } from 'express';
import { AuthError, requireScope, sendProblem } from '../../src/gate';
import type { TestIssuer } from '../../src/testing';
import { homemadeGate, homemadeGuard } from './homemade-gate';
import type { Check } from './homemade-gate';
import { sendOrder, sendOrders, sendPlaced, sampleParts, tillgate } from './sample-app';
import type { SampleParts } from './sample-app';

/** Plants a bug into the sample app. */
export type Plant = (issuer: TestIssuer) => SampleParts;

/** Later than the response, and before the last case has ended, which waits 100 ms. */
const LATE_MS = 90;

const sideEffect: RequestHandler = function saveOrder(_req, _res, next) {
  next();
};

/** Bugs in routes and guards. */
export const GUARD_BUGS: Readonly<Record<string, Plant>> = {
  'a guard is missing': replace({ listOrders: [sendOrders] }),
  'a guard asks for the wrong scope': replace({ getOrder: [requireScope('orders:write'), sendOrder] }),
  'a guard takes one scope where all are needed': replace({
    placeOrder: [requireScope({ anyOf: ['orders:write', 'items:read'] }), sendPlaced],
  }),
  'a guard wants all scopes where one is enough': replace({
    removeOrder: [requireScope('orders:remove', 'admin'), (_req, res) => void res.sendStatus(204)],
  }),
  'a guard runs after the handler': replace({ getOrder: [sendOrder, requireScope('orders:read')] }),
  'a guard runs after a handler that has only side effects': replace({
    placeOrder: [sideEffect, requireScope('orders:write', 'items:read'), sendPlaced],
  }),
  'a guard refuses and calls next()': replace({
    getOrder: [
      function refuseAndGoOn(req, res, next) {
        requireScope('orders:read')(req, res, () => {});
        next();
      },
      (_req, res) => void (res.headersSent || res.json({ id: 'o-1', item: 'itm_0001', quantity: 1 })),
    ],
  }),
  'a guard refuses and calls next() later': replace({
    getOrder: [
      function refuseThenCallNext(req, res, next) {
        let isAllowed = false;
        requireScope('orders:read')(req, res, () => {
          isAllowed = true;
          next();
        });
        if (!isAllowed) res.once('finish', () => setTimeout(next, LATE_MS));
      },
      unlessSent(function sendOrderLate(_req, res) {
        res.json({ id: 'o-1', item: 'itm_0001', quantity: 1 });
      }),
    ],
  }),
  'a gate refuses and calls next() later': (issuer) => {
    const parts = sampleParts(tillgate(issuer));
    return {
      ...parts,
      gate(req, res, next) {
        void parts.gate(req, res, next);
        if (req.path === '/whoami') res.once('finish', () => setTimeout(next, LATE_MS));
      },
      whoAmI: [
        unlessSent(function sendClientLate(_req, res) {
          res.json({ client: 'sample' });
        }),
      ],
    };
  },
  'a guard compares parts of scopes': replace({
    listOrders: [
      function looselyRequireScope(req, _res, next) {
        const isEnough = String(req.auth?.scopes.join(' ')).includes('orders:read');
        next(isEnough ? undefined : new AuthError('insufficient_scope', { requiredScopes: ['orders:read'] }));
      },
      sendOrders,
    ],
  }),
  'a route runs before the gate': replace({
    first(req, res, next) {
      if (req.path === '/api/whoami') res.json({ client: 'anybody' });
      else next();
    },
  }),
};

/** Bugs in the verification of tokens. */
export const TOKEN_BUGS: Readonly<Record<string, Plant>> = {
  'the algorithm is not pinned': forget('algorithm'),
  'alg none is accepted': forget('unsigned'),
  'the signature is not verified': forget('signature'),
  'the issuer is not checked': forget('issuer'),
  'the audience is not checked': forget('audience'),
  'expired tokens are accepted': forget('expiry'),
  'the generation is not checked': forget('generation'),
  'a token in the query is accepted': forget('query'),
  'two Authorization headers are accepted': forget('one header'),
  'a malformed token gets a 500': forget('malformed'),
  'an issuer in a list is accepted': lenient('issuer', ({ iss }, issuer) => [iss].flat().includes(issuer.issuer)),
  'an issuer that is empty is accepted': lenient('issuer', ({ iss }, issuer) => !iss || iss === issuer.issuer),
  'every audience of a list has to be right': lenient('audience', ({ aud }, issuer) =>
    [aud].flat().every((one) => one === issuer.audience),
  ),
  'an audience is a member of an object': lenient('audience', ({ aud }, issuer) =>
    typeof aud === 'object' ? issuer.audience in (aud as object) : aud === issuer.audience,
  ),
  'expired tokens are accepted for two minutes': lenient(
    'expiry',
    ({ exp }, issuer) => Number(exp) * 1000 > issuer.clock.now() - 120_000,
  ),
  'one kind of bad token gets a 500': tamperWith(401, 'expired', (res) => (res.statusCode = 500)),
};

/** Bugs in responses. */
export const RESPONSE_BUGS: Readonly<Record<string, Plant>> = {
  'a 401 has no challenge': tamperWith(401, '', (res) => res.removeHeader('WWW-Authenticate')),
  'a 403 has no challenge': tamperWith(403, '', (res) => res.removeHeader('WWW-Authenticate')),
  'a 401 is sent instead of a 403': tamperWith(403, '', (res) => (res.statusCode = 401)),
  'a 403 is sent instead of a 401': tamperWith(401, 'expired', (res) => (res.statusCode = 403)),
  'a challenge names the wrong scope': rewriteChallenge(/scope="[^"]*"/, 'scope="admin:all"'),
  'a challenge lacks its error': rewriteChallenge(/error="invalid_token", /, ''),
  'a challenge has an error where no token came': rewriteChallenge(
    /realm="api"$/,
    'realm="api", error="invalid_token"',
  ),
  'an error is not problem+json': tamperWith(403, '', (res) => res.setHeader('Content-Type', 'text/plain')),
  'one response hides its reason, the others do not': rewriteBody('"code":"expired"', '"code":"invalid_token"'),
  'the status in a body differs': rewriteBody('"status":403', '"status":401'),
  'a body breaks its schema': replace({
    getOrder: [
      requireScope('orders:read'),
      (_req, res) => void res.json({ id: 'o-1', item: 'itm_0001', quantity: '1' }),
    ],
  }),
  'a status is not documented': replace({ whoAmI: [(_req, res) => void res.status(202).json({ client: 'sample' })] }),
  'a content type is not documented': replace({ whoAmI: [(_req, res) => void res.type('text/plain').send('sample')] }),
  'a good request gets a 500': replace({
    whoAmI: [(req, res) => sendProblem(req, res, { status: 500, code: 'internal_error' })],
  }),
  'a body is invalid JSON': replace({ whoAmI: [(_req, res) => void res.type('application/json').send('{')] }),
  'a good request exceeds the rate limit': replace({
    whoAmI: [(req, res) => sendProblem(req, res, { status: 429, code: 'rate_limited' })],
  }),
  'a route is not documented': replace({
    more: (router) => void router.get('/internal/orders', requireScope('orders:read'), sendOrders),
  }),
  'an operation has no route': replace({ getOrder: [] }),
};

function replace(bug: Partial<SampleParts>): Plant {
  return (issuer) => ({ ...sampleParts(tillgate(issuer)), ...bug });
}

/** A gate whose check of one claim accepts more than it should. */
function lenient(
  check: Check,
  isGood: (claims: Readonly<Record<string, unknown>>, issuer: TestIssuer) => boolean,
): Plant {
  return (issuer) => {
    const verify = homemadeGate(issuer, check);
    const gate: RequestHandler = (req, res, next) =>
      verify(req, res, () => {
        const claims = (req.auth as unknown as { claims: Readonly<Record<string, unknown>> }).claims;
        const reason = check === 'expiry' ? 'expired' : `wrong_${check as 'issuer' | 'audience'}`;
        if (!isGood(claims, issuer)) throw new AuthError(reason as 'expired');
        next();
      });
    return sampleParts({ gate, guard: homemadeGuard });
  };
}

/** Sends nothing twice, as a handler after a late `next()` would. */
function unlessSent(send: RequestHandler): RequestHandler {
  const handler: RequestHandler = (req, res, next) => void (res.headersSent || send(req, res, next));
  return Object.defineProperty(handler, 'name', { value: send.name });
}

function forget(check: Check): Plant {
  return (issuer) => sampleParts({ gate: homemadeGate(issuer, check), guard: homemadeGuard });
}

/** Changes responses of a status whose body contains a text, before they are sent. */
function tamperWith(status: number, text: string, change: (res: Response) => unknown): Plant {
  return replace({
    first: beforeSending((res, body) => {
      if (res.statusCode === status && body.includes(text)) change(res);
      return body;
    }),
  });
}

function rewriteChallenge(pattern: RegExp, replacement: string): Plant {
  return replace({
    first: beforeSending((res, body) => {
      const challenge = res.getHeader('WWW-Authenticate');
      if (typeof challenge === 'string') res.setHeader('WWW-Authenticate', challenge.replace(pattern, replacement));
      return body;
    }),
  });
}

function rewriteBody(from: string, to: string): Plant {
  return replace({
    first: beforeSending((res, body) => {
      const changed = body.replace(from, to);
      if (changed !== body) res.setHeader('Content-Length', Buffer.byteLength(changed));
      return changed;
    }),
  });
}

function beforeSending(rewrite: (res: Response, body: string) => string): RequestHandler {
  return function tamper(_req, res, next) {
    const end = res.end.bind(res) as (chunk?: unknown) => Response;
    res.end = ((chunk?: unknown) => {
      const body = rewrite(res, Buffer.isBuffer(chunk) ? chunk.toString() : typeof chunk === 'string' ? chunk : '');
      return body === '' ? end() : end(body);
    }) as Response['end'];
    next();
  };
}
