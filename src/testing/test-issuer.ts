import { readOptions } from '../core/options';
import { COMMON_OPTIONS, readCommonOptions, testIssuerParts } from './test-issuer-parts';
import type { CommonIssuerOptions, TestIssuer } from './test-issuer-parts';

/** Options of `createTestIssuer()`. */
export interface TestIssuerOptions extends CommonIssuerOptions {
  /** `iss` of the tokens. Default `https://login.test`. */
  readonly issuer?: string | undefined;
}

/**
 * Makes an issuer for contract tests. Its keys and generations are given to the gate as they are, so nothing is fetched
 * and nothing listens; what it changes counts with the next request.
 *
 * @throws TypeError when an option is wrong
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { createTestIssuer } from 'tillgate/testing';
 *
 * const issuer = createTestIssuer();
 * const gate = authenticate(issuer.options);
 * const authorization = `Bearer ${issuer.token({ scope: 'orders:read' })}`;
 * issuer.clock.advance(600_000); // the token has expired
 * ```
 */
export function createTestIssuer(options: TestIssuerOptions = {}): TestIssuer {
  const read = readOptions('createTestIssuer', options, ['issuer', ...COMMON_OPTIONS]);
  const issuer = read.string('issuer') ?? 'https://login.test';
  return testIssuerParts({ ...readCommonOptions(read), issuer }, 'given').testIssuer;
}
