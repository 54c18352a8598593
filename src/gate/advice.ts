import { AuthError } from '../core/auth-error';
import type { Logger } from '../core/logger';
import type { Reason } from '../core/reasons';
import { configurationAdvice } from '../token/advice';
import type { AdviceContext } from '../token/advice';

type Verify<Result> = (token: string, address?: string) => Promise<Result>;

/** Reasons that every token of an API has in common while the API is configured for other tokens. */
const OF_CONFIGURATION: ReadonlySet<Reason> = new Set<Reason>([
  'wrong_type',
  'wrong_issuer',
  'wrong_audience',
  'invalid_claims',
  'lifetime_too_long',
  'generation_missing',
]);

/**
 * The same verification, which logs once what to change if the first tokens are refused for reasons that a wrong
 * configuration has. With several issuers a token does not show which of them is meant.
 *
 * @param isSigned - advice quotes the token, so its signature has to be good: a made-up one must not suggest anything
 */
export function withAdvice<Result>(
  verify: Verify<Result>,
  isSigned: (token: string) => Promise<boolean>,
  {
    issuers,
    logger,
  }: {
    readonly issuers: readonly Pick<AdviceContext, 'issuer' | 'preset' | 'introspection'>[];
    readonly logger: Logger;
  },
): Verify<Result> {
  const [issuer] = issuers;
  let watching = issuers.length === 1;

  async function advise(error: unknown, token: string): Promise<void> {
    if (!watching || !issuer || !(error instanceof AuthError)) return;
    const { reason } = error;
    if (!OF_CONFIGURATION.has(reason)) return;
    const advice = configurationAdvice(reason, token, {
      ...issuer,
      set: (option, value) => `set ${option}: '${value}'`,
    });
    if (advice === undefined || !(await isSigned(token))) return;
    // Another token may have been decided meanwhile.
    if (!watching) return;
    watching = false;
    logger.warn(
      { issuer: issuer.issuer, reason, advice },
      'no token has been accepted so far: check the configuration',
    );
  }

  return function verifyWithAdvice(token, address) {
    const verifying = verify(token, address);
    if (!watching) return verifying;
    const watched = verifying.then(
      () => void (watching = false),
      (error: unknown) => advise(error, token),
    );
    // A logger that throws must not end the process.
    watched.catch(() => undefined);
    return verifying;
  };
}
