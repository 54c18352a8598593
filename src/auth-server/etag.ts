import type { Request, Response } from 'express';
import { RefusedRequest } from './refused-request';
import type { Precondition } from './registry';
import type { ClientRow } from './state';

/** The entity tag of a client: its version. */
export function setEtag(res: Response, { version }: ClientRow): void {
  res.set('ETag', `"${version}"`);
}

/**
 * Makes the check of `If-Match` (RFC 9110 section 13.1.1), to run together with the change. Without the header every
 * version will do.
 */
export function preconditionOf(req: Request): Precondition {
  const expected = req.get('if-match');
  return function requireMatch({ version }) {
    if (expected === undefined || expected.trim() === '*') return;
    // Weak tags never match in a strong comparison: they keep their W/ here.
    if (expected.split(',').some((tag) => tag.trim() === `"${version}"`)) return;
    throw new RefusedRequest({
      status: 412,
      code: 'precondition_failed',
      detail: `The client has changed meanwhile: its version is "${version}". GET it again, then repeat the change.`,
      headers: { ETag: `"${version}"` },
    });
  };
}
