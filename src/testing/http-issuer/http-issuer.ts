import { describe, readOptions } from '../../core/options';
import { COMMON_OPTIONS, publishingIssuer } from '../test-issuer/test-issuer';
import type { CommonIssuerOptions, TestIssuer } from '../test-issuer/test-issuer';
import { issuerEndpoints, JWKS_PATH } from './endpoints';
import { OUTAGES, startOutageServer } from './outage-server';
import type { Outage } from './outage-server';

/** Options of `startTestIssuer()`. */
export interface HttpTestIssuerOptions extends CommonIssuerOptions {
  /** Port on 127.0.0.1, for a server under test that is configured beforehand. Default: any free one. */
  readonly port?: number | undefined;
}

/** A test issuer that can be called over HTTP, as a real one is. Its `issuer` is its URL. */
export interface HttpTestIssuer extends TestIssuer {
  /** Requests for the key set so far, including those that failed. */
  readonly fetches: number;
  /**
   * Makes every endpoint of this issuer fail; without `fault` they work again. Open requests and streams are cut off.
   *
   * @throws TypeError when the fault is unknown
   */
  outage(this: void, fault?: Outage): void;
  /** Stops listening and closes every connection. */
  close(this: void): Promise<void>;
}

const PORTS = { unit: 'ports', min: 0, max: 65_535, integer: true };

/**
 * Starts an issuer on 127.0.0.1 for gates that discover it and fetch its keys: metadata (RFC 8414 and OpenID Connect),
 * key set, `POST /connect/token` for any client id and secret, `GET /generations` with its stream. A gate in this process
 * that was given `options` sees a `bump()` with its next request; give a gate in another process the URL
 * `<issuer>/generations` as its generation source.
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
 *   issuer.clock.advance(4_200_000); // the last good keys are too old now: requests get 503
 *   await gate.close();
 *   await issuer.close();
 * }
 * ```
 */
export async function startTestIssuer(options: HttpTestIssuerOptions = {}): Promise<HttpTestIssuer> {
  const read = readOptions('startTestIssuer', options, ['port', ...COMMON_OPTIONS]);
  const server = await startOutageServer(read.number('port', 0, PORTS));
  const issuer = publishingIssuer(server.url, read, 'http');
  const { testIssuer } = issuer;
  server.serve(issuerEndpoints(issuer));

  // Listed, not spread: spreading would read the getter of `keyId` only once.
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
      server.setOutage(fault);
    },
    close: () => server.close(),
  };
}
