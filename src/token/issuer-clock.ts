import type { Clock } from '../core/clock';
import { AuthError } from '../core/errors';
import type { Logger } from '../core/logger';
import type { Fetch } from './http';
import type { ClaimsVerifier } from './verify';

/**
 * Measures how far the clock of an issuer is from this one, by the `Date` of its responses (RFC 9110 section 6.6.1), and
 * warns when that is more than the tolerance. It changes no decision.
 */
export class IssuerClock {
  readonly #options: IssuerClockOptions;
  /** Whether a response has shown the time of the issuer. */
  isKnown = false;
  /** Clock of the issuer minus this one, in seconds. */
  skewSeconds = 0;
  /** `the clock of the authorization server is 35 s ahead of this one`, where that is more than the tolerance. */
  difference: string | undefined;

  constructor(options: IssuerClockOptions) {
    this.#options = options;
  }

  /** The same `fetch`, whose responses are looked at. */
  readonly fetch: Fetch = async (url, init) => {
    const { fetch, clock } = this.#options;
    const sentMs = clock();
    const response = await fetch(url, init);
    const dateMs = Date.parse(response.headers.get('date') ?? '');
    // A cache on the way keeps the `Date` of the first response.
    if (!Number.isNaN(dateMs) && !response.headers.has('age')) this.#compare(dateMs, sentMs, clock());
    return response;
  };

  /** The header has whole seconds, and was written some time between request and response. */
  #compare(dateMs: number, sentMs: number, receivedMs: number): void {
    const { issuer, logger, clockToleranceMs } = this.#options;
    const [leastMs, mostMs] = [dateMs - receivedMs, dateMs + 1000 - sentMs];
    const before = this.difference;
    this.skewSeconds = Math.round((leastMs + mostMs - 1) / 2000);
    const seconds = Math.abs(this.skewSeconds);
    const where = leastMs > clockToleranceMs ? 'ahead of' : mostMs < -clockToleranceMs ? 'behind' : undefined;
    this.isKnown = true;
    this.difference = where && `the clock of the authorization server is ${seconds} s ${where} this one`;
    if (this.difference === undefined || before !== undefined) return;
    logger.warn({ issuer, toleranceMs: clockToleranceMs }, `${this.difference}: synchronize both (NTP)`);
  }

  /** The same check of claims; what it refuses for its times mentions the difference. */
  explain(verifyClaims: ClaimsVerifier): ClaimsVerifier {
    return (claims) => {
      try {
        return verifyClaims(claims);
      } catch (error) {
        const isOfTime = error instanceof AuthError && (error.reason === 'expired' || error.reason === 'not_yet_valid');
        if (!isOfTime || this.difference === undefined) throw error;
        throw new AuthError(error.reason, { privateDetail: `${error.privateDetail}; ${this.difference}` });
      }
    };
  }
}

interface IssuerClockOptions {
  readonly issuer: string;
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'warn'>;
  readonly clockToleranceMs: number;
}
