import { Authenticator, type BearerRequest } from 'passport';
import { Strategy as BearerStrategy } from 'passport-http-bearer';
import { decisionChannel } from '../core/activity-channels';
import { AuthError } from '../core/errors';
import { ownMembers } from '../core/objects';
import type { Auth } from '../verifier/options';
import type { GateVerifier } from '../verifier/gate-verifier';
import type { Verifier } from '../verifier/verifier';
import { bearerToken } from '../token/bearer';
import type { Caller } from '../token/fair-queue';
import type { GateRequest } from './request-state';

/** What a request was accepted with. */
export interface Accepted {
  /** `undefined` for a request without a token at an optional gate. */
  readonly auth: Auth | undefined;
  /** DPoP nonce that the response should carry, where the one of the proof is aging (RFC 9449 section 8.2). */
  readonly nonce?: string | undefined;
}

/** How long a decision took. `cache`: whether the token was verified before; `none`: there was none to verify. */
export interface Timing {
  readonly startedMs: number;
  cache: 'hit' | 'miss' | 'none';
}

/** Starts to measure one request; `undefined` without a collector. */
export function startTiming(): Timing | undefined {
  return decisionChannel.hasSubscribers ? { startedMs: performance.now(), cache: 'none' } : undefined;
}

/**
 * Decides about one request and does nothing else: throws, or rejects with, the AuthError of the first check that failed.
 *
 * @param callerOf - reads who waits, where the decision has to
 * @param isTrial - leaves the proof of the request good for the gate that decides
 */
export type Decide = (
  req: GateRequest,
  callerOf: (req: GateRequest) => Caller,
  timing: Timing | undefined,
  isTrial?: boolean,
) => Accepted | Promise<Accepted>;

const ANONYMOUS: Accepted = Object.freeze({ auth: undefined });

/** Makes the decision of a gate, for its middleware, for `verify()` and for `reportOnly()`. */
export function decisionMaker(verifier: GateVerifier): Decide {
  const { settings, possession } = verifier;
  const { challenges, optional } = settings;
  const acceptsDpop = challenges.length > 0;
  const verify = throughPassport();

  return function decide(req, callerOf, timing, isTrial) {
    let token: string;
    try {
      token = bearerToken(req, acceptsDpop);
    } catch (error) {
      if (optional && error instanceof AuthError && error.reason === 'missing_token') return ANONYMOUS;
      throw error;
    }
    if (timing) timing.cache = 'hit';
    const ofKind = verifier.verifierOf(token);
    const known = ofKind.known(token);
    if (known && !possession) return { auth: known };
    if (timing && !known) timing.cache = 'miss';
    const caller = callerOf(req);
    if (!possession) return verify(ofKind, token, caller).then((auth) => ({ auth }));
    return withProofs(req, token, known ?? verify(ofKind, token, caller), caller, isTrial);
  };

  /** A known token too needs the proof of this request where it is bound to a key. */
  async function withProofs(
    req: GateRequest,
    token: string,
    verified: Auth | Promise<Auth>,
    caller: Caller,
    isTrial: boolean | undefined,
  ): Promise<Accepted> {
    const auth = await verified;
    return { auth, nonce: await possession?.verify(req, token, auth, caller, isTrial) };
  }
}

/**
 * Puts passport's bearer strategy before a verification.
 *
 * Passport sees a request with one header and nothing else: so it cannot take a token from query or body, add members
 * to the app's request, or write a response. What it gets for its `user` is the verification under way, so it never waits, and
 * one request of ours serves all. The strategy is registered by name, because passport changes one that is passed directly.
 */
function throughPassport(): (verifier: Verifier, ...given: Parameters<Verifier['verify']>) => Promise<Auth> {
  let verifier: Verifier;
  let caller: Caller | undefined;
  const passport = new Authenticator();
  const options = { passReqToCallback: false, scope: undefined, realm: 'api' } as const;
  passport.use(new BearerStrategy(options, (token, done) => done(null, verifier.verify(token, caller))));
  const run = passport.authenticate<Promise<Auth>>('bearer', ownMembers(PASSPORT_OPTIONS));
  const headers = { authorization: '' };
  const request: BearerRequest<Promise<Auth>> = { headers, body: undefined, query: undefined, auth: undefined };

  return function verifyByStrategy(verifierOfToken, token, ofCaller) {
    verifier = verifierOfToken;
    caller = ofCaller;
    headers.authorization = `Bearer ${token}`;
    request.auth = undefined;
    run(request, NO_RESPONSE, () => undefined);
    return request.auth ?? Promise.reject(NO_TOKEN);
  };
}

const PASSPORT_OPTIONS = { session: false, assignProperty: 'auth', authInfo: false, failWithError: true } as const;
const NO_TOKEN = new Error('passport found no bearer token');
/** Passport writes to it where the strategy finds no token, before it calls back with an error. */
const NO_RESPONSE = { statusCode: 0, setHeader() {} };
