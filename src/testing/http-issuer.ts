import { describe, readOptions } from '../core/options';
import { issuerAnswers, JWKS_PATH } from './http-issuer-answers';
import { OUTAGES, startBreakableServer } from './http-issuer-server';
import type { Outage } from './http-issuer-server';
import { COMMON_OPTIONS, readCommonOptions, testIssuerParts } from './test-issuer-parts';
import type { CommonIssuerOptions, TestIssuer } from './test-issuer-parts';

/** Options of `startTestIssuer()`. */
export interface HttpTestIssuerOptions extends CommonIssuerOptions {
  /** Port on 127.0.0.1, for a server under test that is configured beforehand. Default: any free one. */
  readonly port?: number | undefined;
}

/** A test issuer that can be called over HTTP, as a real one is. Its `issuer` is its address. */
export interface HttpTestIssuer extends TestIssuer {
  /** Requests for the key set so far, those that failed included. */
  readonly fetches: number;
  /**
   * Breaks every address of this issuer; without `fault` they work again. What is under way then is cut off.
   *
   * @throws TypeError when there is no such fault
   */
  outage(this: void, fault?: Outage): void;
  /** Stops listening and cuts every connection. */
  close(this: void): Promise<void>;
}

const PORTS = { unit: 'ports', min: 0, max: 65_535, integer: true };

/**
 * Starts an issuer on 127.0.0.1 that a gate discovers and fetches keys from: metadata (RFC 8414 and OpenID Connect),
 * key set, `POST /connect/token` for any client id and secret, `GET /generations` with its stream. A gate in this process
 * that is given `options` sees a `bump()` with its next request; to one in another process give the address
 * `<issuer>/generations` as its source.
 *
 * @throws TypeError when an option is wrong
 * @throws Error when it cannot listen
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { startTestIssuer } from 'tillgate/testing';
 *
 * export async function tryAnOutage() {
 *   const issuer = await startTestIssuer();
 *   const gate = authenticate(issuer.options);
 *   await gate.ready();
 *   issuer.outage('503');
 *   issuer.clock.advance(4_200_000); // the last good keys have become too old: requests get 503
 *   await gate.close();
 *   await issuer.close();
 * }
 * ```
 */
export async function startTestIssuer(options: HttpTestIssuerOptions = {}): Promise<HttpTestIssuer> {
  const read = readOptions('startTestIssuer', options, ['port', ...COMMON_OPTIONS]);
  const common = readCommonOptions(read);
  const server = await startBreakableServer(read.number('port', 0, PORTS));
  const { testIssuer, keys, generations } = testIssuerParts({ ...common, issuer: server.address }, 'fetched');
  const { source } = generations;
  server.serve(issuerAnswers({ issuer: testIssuer, jwks: keys.jwks, source }));

  // Listed, not spread: a spread would read the getters once and for all.
  return {
    issuer: testIssuer.issuer,
    audience: testIssuer.audience,
    options: testIssuer.options,
    clock: testIssuer.clock,
    token: testIssuer.token,
    bump: testIssuer.bump,
    rotate: testIssuer.rotate,
    removeKey: testIssuer.removeKey,
    get keyId() {
      return testIssuer.keyId;
    },
    get fetches() {
      return server.count(`GET ${JWKS_PATH}`);
    },
    outage(fault) {
      if (fault !== undefined && !OUTAGES.includes(fault)) {
        throw new TypeError(`outage(): expected one of ${OUTAGES.join(', ')}, or nothing, got ${describe(fault)}`);
      }
      server.breakDown(fault);
    },
    close: () => server.close(),
  };
}
