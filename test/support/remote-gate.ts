import type { Schedule } from '../../src/gate/core/clock';
import { fakeTime } from './fake-time';
import type { FakeTime } from './fake-time';
import { gateApp } from './gate-app';
import type { GateApp, GateAppOptions } from './gate-app';
import { token as sign, NOW_MS } from './issuer';
import type { TokenParts } from './issuer';
import { eventually, keyServer } from './key-server';
import type { KeyServer } from './key-server';
import type { TestKey } from './keys';

/** A gate that trusts an issuer on loopback, with a clock that the test advances. */
export interface RemoteGate extends GateApp {
  readonly server: KeyServer;
  readonly time: FakeTime;
  /** A token of this issuer that was not seen before. */
  token(parts?: TokenParts): string;
  /** Advances time second by second, and awaits each refresh that falls due. */
  pass(ms: number): Promise<void>;
  /** Status of a GET with a new token that was signed with this key: never a cached one. */
  statusWith(key: TestKey): Promise<number>;
  stop(): Promise<void>;
}

export const TTL_MS = 600_000;
export const STALE_MS = 3_600_000;
/** With `random: () => 0.5` a refresh runs at 0.8 of the age limit. */
export const REFRESH_MS = 0.8 * TTL_MS;
const FETCH_TIMEOUT_MS = 5_000;

export async function remoteGate(keys: readonly TestKey[], options: GateAppOptions = {}): Promise<RemoteGate> {
  return gateAt(await keyServer(...keys), options);
}

/** The same for a server that a test has prepared. */
export function gateAt(server: KeyServer, options: GateAppOptions = {}): RemoteGate {
  const time = fakeTime(NOW_MS);
  const timers = refreshTimers(time.schedule);
  const issuer = server.origin;
  const through = gateApp({
    ...('issuers' in options ? {} : { issuer }),
    fetch,
    clock: time.clock,
    schedule: timers.schedule,
    random: () => 0.5,
    ...options,
  });
  let serial = 0;

  function token(parts: TokenParts = {}): string {
    const now = Math.floor(time.clock() / 1000);
    const claims = { iss: issuer, iat: now, exp: now + 3_600, jti: `t${serial++}`, ...parts.claims };
    return sign({ ...parts, claims });
  }

  return Object.assign(through, {
    server,
    time,
    token,
    async pass(ms: number) {
      await eventually(timers.waiting);
      for (let left = ms; left > 0; left -= 1_000) {
        await time.advance(Math.min(1_000, left));
        await eventually(timers.waiting);
      }
    },
    async statusWith(key: TestKey) {
      return (await through.get(token({ key }))).status;
    },
    async stop() {
      await through.gate.close();
      await server.stop();
    },
  });
}

/** Tells whether a refresh is scheduled; if none is, one is in progress. */
function refreshTimers(schedule: Schedule): { schedule: Schedule; waiting: () => boolean } {
  const waiting = new Set<object>();
  return {
    waiting: () => waiting.size > 0,
    schedule(task, delayMs) {
      if (delayMs === FETCH_TIMEOUT_MS) return schedule(task, delayMs);
      const mark = {};
      const timer = schedule(() => {
        waiting.delete(mark);
        task();
      }, delayMs);
      waiting.add(mark);
      return {
        cancel() {
          waiting.delete(mark);
          timer.cancel();
        },
      };
    },
  };
}
