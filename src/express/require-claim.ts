import type { IncomingMessage, ServerResponse } from 'node:http';
import { AuthError } from '../core/auth-error';
import { describe } from '../core/options';
import { runGuard } from './guard';
import type { Guard } from './guard';
import type { GateRequest, Middleware } from './http';

/** Decides about the value of a claim; `undefined` when the token has none. Only `true` lets the request pass. */
export type ClaimTest = (value: unknown, req: IncomingMessage) => boolean;

/** The middleware that `requireClaim()` makes. */
export interface ClaimGuard extends Middleware {
  /** The claim that the guard looks at; route audits see by it that a route is guarded. */
  readonly claim: string;
}

/**
 * Makes a guard that lets a request pass when a claim of its token passes a test; else 403 `access_denied`. A test
 * that throws, or that answers anything but `true`, refuses.
 *
 * @throws TypeError when the name is empty or the test is no function
 *
 * @example
 * ```ts
 * import { Router } from 'express';
 * import { requireClaim } from 'tillgate';
 *
 * const berlin = Router();
 * berlin.get('/', requireClaim('store', (store) => store === 'berlin-1'), (req, res) => res.json([]));
 * ```
 */
export function requireClaim(name: string, test: ClaimTest): ClaimGuard {
  if (typeof name !== 'string' || name === '') {
    throw new TypeError(`requireClaim(): expected the name of a claim, got ${describe(name)}`);
  }
  if (typeof test !== 'function') {
    throw new TypeError(`requireClaim(): expected a test function, got ${describe(test)}`);
  }

  const guard: Guard = {
    name: 'requireClaim()',
    judge({ claims }, req) {
      const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
      try {
        const passed = test(value, req) === true;
        return passed ? undefined : new AuthError('claim_refused', { privateDetail: `claim ${name}` });
      } catch (cause) {
        return new AuthError('claim_refused', { privateDetail: `the test of claim ${name} threw`, cause });
      }
    },
  };

  function requireClaim(req: GateRequest, res: ServerResponse, next: (error?: unknown) => void): void {
    runGuard(guard, req, res, next);
  }
  return Object.assign(requireClaim, { claim: name });
}
