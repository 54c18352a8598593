import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock';

/** Makes and checks the nonces of a server (RFC 9449 section 9). Nothing is stored: a nonce is a time with its MAC. */
export interface DpopNonces {
  /** A nonce of now. */
  make(): string;
  /** First moment in ms at which a nonce is no longer accepted; `undefined` when it is not accepted now. */
  acceptedUntilMs(nonce: string): number | undefined;
  /** Whether the client should be given a newer nonce with the response, by the end of the one that it sent. */
  isAging(untilMs: number): boolean;
}

/** How long a nonce is accepted. */
const LIFETIME_MS = 300_000;
/** How far the clocks of the processes that share a secret may differ. */
const CLOCK_DIFFERENCE_MS = 10_000;
const TIME_BYTES = 6;
const MAC_BYTES = 16;

/**
 * Makes the nonces of one gate.
 *
 * @param secret - shared by all processes of an API; default: one of this gate
 */
export function dpopNonces(clock: Clock, secret: string | Buffer = randomBytes(32)): DpopNonces {
  function mac(time: Buffer): Buffer {
    return createHmac('sha256', secret).update('tillgate dpop nonce').update(time).digest().subarray(0, MAC_BYTES);
  }

  /** Time at which a nonce was made; `undefined` when its MAC is wrong. */
  function timeOf(nonce: string): number | undefined {
    const bytes = Buffer.from(nonce, 'base64url');
    if (bytes.length !== TIME_BYTES + MAC_BYTES) return undefined;
    const time = bytes.subarray(0, TIME_BYTES);
    return timingSafeEqual(bytes.subarray(TIME_BYTES), mac(time)) ? time.readUIntBE(0, TIME_BYTES) : undefined;
  }

  return {
    make() {
      const time = Buffer.alloc(TIME_BYTES);
      time.writeUIntBE(Math.max(0, Math.floor(clock())), 0, TIME_BYTES);
      return Buffer.concat([time, mac(time)]).toString('base64url');
    },
    acceptedUntilMs(nonce) {
      const madeMs = timeOf(nonce);
      if (madeMs === undefined || madeMs > clock() + CLOCK_DIFFERENCE_MS) return undefined;
      const untilMs = madeMs + LIFETIME_MS;
      return clock() < untilMs ? untilMs : undefined;
    },
    isAging: (untilMs) => untilMs - clock() < LIFETIME_MS / 2,
  };
}
