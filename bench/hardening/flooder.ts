/**
 * The flood, in a process of its own: whoever measures good requests must not be held up by sending bad ones. It is told
 * what to send, and reports the outcome.
 */
import { randomBytes } from 'node:crypto';
import { paced } from '../../test/all/support/load';
import { withToken } from './real-tokens';

/** What to send. */
export interface FloodOrder {
  readonly url: string;
  /** What is wrong with the tokens. */
  readonly wrong: 'kid' | 'signature';
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

process.on('message', ({ url, wrong, pattern, perSecond, requests }: FloodOrder) => {
  const forge = wrong === 'kid' ? withRandomKid : withRandomSignature;
  void paced(perSecond, requests, () => withToken(url, forge(pattern))).then((outcomes) => {
    process.send?.(outcomes.map(({ status, ms }): FloodOutcome => ({ status, ms })));
  });
});

/** The same token under another header: its signature is wrong, which nobody finds out without the key. */
function withRandomKid(token: string): string {
  const kid = randomBytes(750).toString('base64url');
  const header = Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid })).toString('base64url');
  return header + token.slice(token.indexOf('.'));
}

/** The same token with a signature of the right length that is of no key. */
function withRandomSignature(token: string): string {
  return `${token.slice(0, token.lastIndexOf('.'))}.${randomBytes(64).toString('base64url')}`;
}
