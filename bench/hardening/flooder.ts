/**
 * The flood, in a process of its own: whoever measures good requests must not be held up by sending bad ones. Is told
 * what to send, and responses what came of it.
 */
import { randomBytes } from 'node:crypto';
import { paced } from '../../test/all/support/load';
import { withToken } from './real-tokens';

/** What to send. */
export interface FloodOrder {
  readonly url: string;
  /** A good token: the flood is made of its claims and signature. */
  readonly pattern: string;
  readonly perSecond: number;
  readonly requests: number;
}

/** What became of one request. */
export interface FloodOutcome {
  readonly status: number;
  readonly ms: number;
}

process.on('message', ({ url, pattern, perSecond, requests }: FloodOrder) => {
  void paced(perSecond, requests, () => withToken(url, withRandomKid(pattern))).then((outcomes) => {
    process.send?.(outcomes.map(({ status, ms }): FloodOutcome => ({ status, ms })));
  });
});

/** The same token under another header: its signature is wrong, which nobody finds out without the key. */
function withRandomKid(token: string): string {
  const kid = randomBytes(750).toString('base64url');
  const header = Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid })).toString('base64url');
  return header + token.slice(token.indexOf('.'));
}
