import type { Change, Mark, Unit } from '../../src/gate/generation/log';
import { BOUNDS, REST_MS } from './plan';
import type { Process, Verdict } from './process';
import { keyOf } from './shop';
import type { ChangeMade, Client, Token } from './shop';
import { START } from './time';
import type { World } from './world';

/** What broke a promise. */
export class Violation extends Error {
  override readonly name = 'Violation';
  readonly promise: string;

  constructor(promise: string, detail: string) {
    super(`${promise}: ${detail}`);
    this.promise = promise;
  }
}

/** A mark every second, a retry within one, an epoch of several units: by then a whole publisher has appended everything. */
const REPAIR_MS = 10_000;
/** A wait for a mark, or for a reader that hangs, is over by then. */
const RECOVERY_MS = 16_000;
/** After this part of the rest, nothing is read anew. */
export const QUIET_MS = 30_000;
/** Messages there and back, and the pause between two reads. */
const SLACK_MS = 600;
const HOUR = 3_600_000;
/** What a clock said so long ago can be in a mark that is read now. */
const REMEMBERED_MS = 150_000;

/** Says the promise: each function is a sentence of it. `whole since` is infinity where something is not whole. */
export class Oracle {
  readonly #world: World;
  violation: Violation | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  fail(promise: string, detail: string): void {
    if (this.violation) return;
    this.violation = new Violation(promise, detail);
    this.#world.tell(`BROKEN: ${this.violation.message}`);
  }

  /** A process has decided about a token that has not expired. */
  decided(process: Process, client: Client, token: Token, verdict: Verdict): void {
    const value = process.valueOf(token);
    const what = (): string => `${process.name}, ${client.id} of ${value}`;
    if (verdict === 'superseded') {
      if (value > (process.refused.get(client.id)?.value ?? -1)) {
        process.refused.set(client.id, { value, atMs: this.#world.nowMs() });
      }
      if (this.#isNewest(process, client, token)) this.fail('the newest token is never superseded', what());
    }
    if (verdict === 'generations_unavailable') {
      if (this.#isNewest(process, client, token) && this.#mustAccept(process)) {
        this.fail(
          'while everything is whole the newest token is accepted',
          `${what()} ${JSON.stringify(process.follower?.status())}`,
        );
      }
    }
    if (verdict === 'accepted') this.#accepted(process, client, token, what);
  }

  #accepted(process: Process, client: Client, token: Token, what: () => string): void {
    const { time, plan } = this.#world;
    const value = process.valueOf(token);
    const refused = process.refused.get(client.id);
    // A floor may be forgotten once the tokens from before it have expired.
    if (refused && value <= refused.value && token.iat * 1_000 < refused.atMs) {
      this.fail('no process accepts what it has refused as superseded', `${what()}, refused ${refused.value}`);
    }
    if (process.machine.clock() < process.completeClockMs) {
      this.fail('after a step back of the clock the age of what was read is unknown', what());
    }
    const unreadMs = time.nowMs - process.completeMs;
    if (
      plan.setting.source !== 'memory' &&
      unreadMs > BOUNDS.maxStalenessMs + process.machine.errorSince(process.completeMs)
    ) {
      this.fail('a log that was not read for maxStalenessMs is stale', `${what()}, ${unreadMs} ms`);
    }
    if (plan.setting.isKeptTooShort && plan.setting.tokenAgeMs >= HOUR) {
      this.fail('a log that keeps changes for a shorter time than they are needed is refused', what());
    }
    for (const change of client.changes)
      if (change.generation > value && !change.isLost) this.#deadAccepted(process, change, what);
  }

  /** A token was accepted that is dead by this change. */
  #deadAccepted(process: Process, change: ChangeMade, what: () => string): void {
    const { nowMs } = this.#world.time;
    const { ackedMs, recordedMs, published } = change;
    if (ackedMs > nowMs) return;
    const agoMs = nowMs - ackedMs;
    const detail = (): string => `${what()}, dead by ${change.generation}, acknowledged ${agoMs} ms ago`;
    const { machine } = process;
    const isRead = published && process.completeMs > ackedMs && process.wholeSinceMs <= ackedMs && !process.demoted;
    if (isRead && this.#world.logSinceMs < recordedMs && machine.errorSince(ackedMs) < HOUR - REMEMBERED_MS) {
      this.fail('what a process has read is in force, or its time has not come: 503', detail());
    }
    const errorMs = this.#errorMs(process, ackedMs - REMEMBERED_MS);
    // What is of its future counts as unread by the publisher's own time.
    const isSlow = machine.slowSinceMs <= nowMs - 2 * BOUNDS.maxSilenceMs - REPAIR_MS;
    if (
      isSlow &&
      this.#world.shop.machine.errorSince(-Infinity) === 0 &&
      agoMs > BOUNDS.maxSilenceMs + 3 * BOUNDS.skewMs
    ) {
      this.fail('a floor of the future counts as unread', detail());
    }
    if (agoMs > BOUNDS.maxSilenceMs + BOUNDS.skewMs + errorMs && errorMs < HOUR) {
      this.fail('a change is in force after maxSilenceMs plus the tolerance, or the process refuses', detail());
    }
    if (errorMs > 0 || process.demoted) return;
    const publisherSinceMs = this.#publisherWholeSinceMs();
    const processSinceMs = this.#processWholeSinceMs(process);
    // What is read is at most maxStalenessMs old, and the log has had it since.
    if (publisherSinceMs <= nowMs - REPAIR_MS && agoMs > REPAIR_MS && process.wholeSinceMs <= nowMs - REPAIR_MS) {
      this.fail('while the publisher and the log are whole, what is read has every change', detail());
    }
    // A publisher that is back within a second delivers what is pending before the wait for its mark is over.
    const { recoveredMs } = process;
    const isBack = publisherSinceMs <= recoveredMs + 1_000 && processSinceMs <= recoveredMs;
    if (ackedMs <= recoveredMs && recoveredMs <= nowMs && isBack) {
      this.fail('after an outage no change of the outage is first accepted again', detail());
    }
    const { pollMs, readTimeoutMs } = process.plan;
    if (!published || publisherSinceMs > recordedMs) return;
    if (agoMs > pollMs + SLACK_MS && processSinceMs <= recordedMs - RECOVERY_MS) {
      this.fail('while everything is whole a change is in force within pollMs', detail());
    }
    const overDeadMs = pollMs + readTimeoutMs + BOUNDS.maxStalenessMs / 4 + SLACK_MS;
    if (nowMs - Math.max(ackedMs, processSinceMs) > overDeadMs) {
      this.fail('over a dead connection a change is in force within pollMs plus readTimeoutMs', detail());
    }
  }

  /** A change was acknowledged. */
  acknowledged(change: ChangeMade): void {
    const world = this.#world;
    const { clientId, generation, published, recordedMs } = change;
    const isCurrent = !change.isLost && world.shop.machine.rightSinceMs < recordedMs;
    if (published && world.logSinceMs < recordedMs && !this.#isInLog(clientId, generation)) {
      this.fail('a change that says published: true is in the log', `${clientId} of ${generation}`);
    }
    const isWhole = this.#publisherWholeSinceMs() < recordedMs - REPAIR_MS;
    if (!published && isWhole && isCurrent && generation <= world.shop.machine.clock()) {
      this.fail('while publisher and log are whole a change is published', `${clientId} of ${generation}`);
    }
    const tookMs = world.time.nowMs - recordedMs;
    const isRunning = world.shop.wholeSinceMs < recordedMs && !world.shop.machine.isSuspended;
    if (isRunning && tookMs > world.plan.setting.publisherTimeoutMs + SLACK_MS) {
      this.fail('a response to a change says within the limit where it is', `${tookMs} ms`);
    }
  }

  /** The publisher sends a unit; the returned function is called once it was applied. */
  appends(changes: readonly Change[], unit: Unit | undefined, isClosed: boolean): (mark: Mark | undefined) => void {
    const world = this.#world;
    if (isClosed) this.fail('a publisher that was closed begins no further unit', `${changes.length} changes`);
    const { shop } = world;
    // An epoch has all of the record; later units could have left out what changed since.
    const isNew = unit?.expected?.completeMs === 0;
    const record = unit && (isNew ? [...shop.record] : shop.clients.map(({ id }) => shop.changeOf(id)));
    const clockMs = shop.machine.clock();
    return (mark) => {
      if (!unit || !record || mark?.epoch !== unit.mark.epoch || mark.unit !== unit.mark.unit) return;
      const { completeMs, epoch } = unit.mark;
      world.nameOf(epoch);
      if (completeMs === 0 || completeMs === unit.expected?.completeMs) return;
      if (epoch === unit.expected?.epoch && completeMs < unit.expected.completeMs) {
        this.fail('the time of a mark never goes back within an epoch', `${completeMs}`);
      }
      for (const [clientId, generation] of record) {
        if (generation <= clockMs + HOUR && !this.#isInLog(clientId, generation)) {
          this.fail('a mark calls a log complete only when it has every change', `${clientId} of ${generation}`);
        }
      }
    };
  }

  /** Everything has been whole, and every clock right, for 75 s. */
  rested(process: Process): void {
    const { shop, plan } = this.#world;
    const promise = 'once everything is whole every process is right';
    const isKept = !plan.setting.isKeptTooShort || plan.setting.tokenAgeMs < HOUR;
    // What the next hour brings keeps the log from being called complete.
    if (!isKept || this.#isRecordEarly(this.#world.time.nowMs)) return;
    const nowMs = process.machine.clock();
    const { source, lastError } = process.follower?.status() ?? {};
    if (source !== 'fresh') this.fail(promise, `${process.name} is ${source}: ${lastError}`);
    for (const client of shop.clients) {
      const newest = shop.record.get(client.id) as number;
      if (newest > nowMs || client.foreign.some((generation) => isAwaited(generation, process))) continue;
      const token = { clientId: client.id, generation: newest, iat: Math.floor(nowMs / 1_000) };
      const older = { ...token, generation: newest - 1, iat: Math.ceil(newest / 1_000) - 1 };
      const verdicts = [process.present(older, true), process.present(token, false)];
      const expected: string[] = ['superseded', 'accepted'];
      // What somebody else appended is lost with the log.
      const others = [...client.foreign, ...client.changes.map(({ generation }) => generation)];
      if (others.some((generation) => generation > process.valueOf(token))) expected[1] = verdicts[1] as string;
      // A number whose tokens have all expired may be forgotten.
      const isForgotten = newest < nowMs - plan.setting.tokenAgeMs || client.changes.every(({ isLost }) => isLost);
      if (isForgotten) expected[0] = verdicts[0] as string;
      if (verdicts.join() !== expected.join())
        this.fail(promise, `${process.name}, ${client.id} of ${newest}: ${verdicts.join()}`);
    }
    const asked = process.questions - process.questionsAtRest;
    if (!shop.clients.some((client) => this.#hasFloorOfFuture(process, client)) && asked > (REST_MS - QUIET_MS) / 230) {
      this.fail('a source that brings nothing new is asked four times a second at most', `${process.name}, ${asked}`);
    }
    const { state, pending = 0 } = shop.publisher?.status() ?? { state: 'current' };
    if (state !== 'current' || pending > 0) this.fail(promise, `the publisher is ${state}, ${pending} pending`);
  }

  /** At any time. */
  looked(process: Process): void {
    const { time } = this.#world;
    const runsMs = time.nowMs - process.startedMs;
    const settleMs = process.plan.readTimeoutMs + 1_000;
    if (runsMs > settleMs + 100 && process.settledMs === undefined && process.machine.isSuspended === false) {
      if (process.wholeSinceMs <= process.startedMs)
        this.fail('a request that waits for the first read is answered', process.name);
    }
  }

  #isInLog(clientId: string, generation: number): boolean {
    return this.#world.changesInLog().has(keyOf([clientId, generation]));
  }

  #isNewest(process: Process, client: Client, token: Token): boolean {
    const newest = this.#world.shop.record.get(client.id) as number;
    const value = process.valueOf(token);
    if (client.isDeleted || token.generation !== newest || value < newest) return false;
    // What has always been in the future of a process is not in force.
    const latestMs = process.machine.clock() + BOUNDS.skewMs + process.machine.errorSince(-Infinity);
    const isHigher = (generation: number): boolean => generation > value && generation <= latestMs;
    return !client.changes.some(({ generation }) => isHigher(generation)) && !client.foreign.some(isHigher);
  }

  /** Whether nothing explains that a process does not accept the newest token. */
  #mustAccept(process: Process): boolean {
    const { plan, time, shop } = this.#world;
    const atMs = time.nowMs - RECOVERY_MS;
    const isRight = process.machine.rightSinceMs <= atMs && shop.machine.rightSinceMs <= atMs;
    if (!isRight || plan.setting.isKeptTooShort || this.#isRecordEarly(atMs)) return false;
    // A floor of the future counts as unread: of whichever client it is.
    const dueMs = process.machine.clock() + BOUNDS.skewMs - RECOVERY_MS;
    const isUnread = (generation: number): boolean => generation > dueMs && generation <= dueMs + 2 * HOUR;
    if (shop.clients.some((each) => this.#hasFloorOfFuture(process, each) || each.foreign.some(isUnread))) return false;
    return this.#publisherWholeSinceMs() <= atMs && this.#processWholeSinceMs(process) <= atMs;
  }

  #hasFloorOfFuture(process: Process, { changes, foreign }: Client): boolean {
    const isOfFuture = (generation: number): boolean => isAwaited(generation, process);
    return foreign.some(isOfFuture) || changes.some(({ generation }) => isOfFuture(generation));
  }

  /** Whether a clock that was ahead recorded a change whose time had not come at that time: it keeps the log from being complete. */
  #isRecordEarly(atMs: number): boolean {
    const isEarly = ({ generation, recordedMs }: ChangeMade): boolean =>
      generation > START + Math.max(recordedMs + 60, atMs);
    return this.#world.shop.clients.some(({ changes }) => changes.some(isEarly));
  }

  #errorMs(process: Process, fromMs: number): number {
    return process.machine.errorSince(fromMs) + this.#world.shop.machine.errorSince(fromMs);
  }

  #publisherWholeSinceMs(): number {
    const { shop, logSinceMs, plan } = this.#world;
    if (!shop.isUp || shop.machine.isSuspended || shop.recordMs !== 0) return Infinity;
    const linkMs = plan.setting.source === 'truth' ? 0 : shop.link.wholeSinceMs;
    return Math.max(linkMs, shop.wholeSinceMs, logSinceMs);
  }

  #processWholeSinceMs(process: Process): number {
    if (process.demoted || process.machine.isSuspended) return Infinity;
    const linkMs = this.#world.plan.setting.source === 'memory' ? 0 : process.link.wholeSinceMs;
    return Math.max(linkMs, process.wholeSinceMs, process.startedMs);
  }
}

/** Whether a floor lies in the future of a process. */
function isAwaited(generation: number, { machine }: Process): boolean {
  return generation > machine.clock() + BOUNDS.skewMs && generation <= machine.clock() + HOUR + BOUNDS.skewMs;
}
