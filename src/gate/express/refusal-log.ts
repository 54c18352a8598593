import { escapeUnsafe } from '../core/logger';
import type { Decision } from '../verifier/options';

/** What is logged of one refusal. */
export interface LoggedRefusal extends Pick<Decision, 'method' | 'path' | 'requestId'> {
  readonly reason: string;
  readonly status: number;
  readonly issuer?: string | undefined;
  /** Only where a signature or the issuer vouches for it. */
  readonly clientId?: string | undefined;
  readonly detail?: string | undefined;
  /** Of a trial: the status of the response, what would settle the difference, and how many requests a line stands for. */
  readonly responded?: number;
  readonly advice?: string;
  readonly count?: number;
}

const MAX_TEXT = 512;

/** Path, request id and detail can be text of the caller: one line of bounded length. */
export function printable(refusal: LoggedRefusal): object {
  const fields = Object.entries(refusal).map(([name, value]: [string, unknown]) => {
    return [name, typeof value === 'string' ? escapeUnsafe(value.slice(0, MAX_TEXT)) : value];
  });
  return Object.fromEntries(fields) as object;
}
