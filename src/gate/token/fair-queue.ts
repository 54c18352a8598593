import { isIP } from 'node:net';
import { AuthError } from '../core/errors';
import { subjectOf } from '../core/subject-caller';

/** The caller of a request, as far as it decides when its turn is; `address` is an IP address. */
export interface Caller {
  readonly address?: string | undefined;
  /** Destroyed when the client disconnects: nothing is computed for it any more. */
  readonly socket?: { readonly destroyed?: boolean } | undefined;
  /** `clientUnit()` of the client that a verified token names; counts instead of the address. */
  readonly client?: string | undefined;
}

/** Names a client among those of all issuers; `undefined`, so that its site counts, for one that is named by its subject alone. */
export function clientUnit(issuer: string, clientId: string): string | undefined {
  return subjectOf(clientId) === undefined ? `client ${issuer} ${clientId}` : undefined;
}

/** Who is counted, by what a caller cannot have many of: its client where that is proven, else its site. */
export function unitOf({ client, address = '' }: Caller): string {
  return client ?? `site ${siteOf(address)}`;
}

/** What one customer of a network usually has: the /24 of an IPv4 address, the /48 of an IPv6 address. */
function siteOf(address: string): string {
  const ipv4 = address.replace(/^[0:]*:ffff:(?=\d+\.)/i, '');
  if (isIP(ipv4) === 4) return ipv4.slice(0, ipv4.lastIndexOf('.'));
  if (isIP(address) !== 6) return '';
  const [groups = ''] = address.split('::');
  const [a = '', b = '', c = ''] = groups.split(':');
  return [a, b, c].map((group) => parseInt(group || '0', 16).toString(16)).join(':');
}

/**
 * A bounded number of places. A unit holds at most as many as are left free: alone half of them, two units a third each. So
 * no busy unit leaves another one without a place.
 */
export class Places {
  readonly #limit: number;
  readonly #held = new Map<string, number>();
  #taken = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether a unit may take `count` places. More than there are at all can be taken while the others are free. */
  hasRoom(unit: string, count = 1): boolean {
    return this.#taken === 0 || (this.#held.get(unit) ?? 0) + count <= this.#limit - this.#taken;
  }

  /** Whether a unit has any place. */
  holds(unit: string): boolean {
    return this.#held.has(unit);
  }

  /** Takes places; gives them back where `count` is negative. */
  take(unit: string, count = 1): void {
    const held = (this.#held.get(unit) ?? 0) + count;
    if (held > 0) this.#held.set(unit, held);
    else this.#held.delete(unit);
    this.#taken += count;
  }
}

/**
 * Runs work within a limit; what exceeds it waits. The next unit is the one that was served least of late, so a newcomer waits
 * for what runs and for other newcomers, and for no backlog. Proven clients and sites take turns: neither kind goes first. The
 * next unit is waited for until its work has room: otherwise cheap work of others would take every place that becomes free.
 */
export class FairQueue {
  readonly #what: string;
  readonly #running: Places;
  readonly #served: Served;
  readonly #ofClients: Line;
  readonly #ofSites: Line;
  /** Both, in the order of their turns. */
  readonly #lines: Line[];

  /** @param limits - in the unit of the costs: what runs at the same time, and what waits at most, of each of the two kinds */
  constructor(limits: { readonly running: number; readonly waiting: number }, what: string) {
    this.#what = what;
    this.#running = new Places(limits.running);
    this.#served = new Served(limits.waiting);
    this.#ofClients = new Line(limits.waiting);
    this.#ofSites = new Line(limits.waiting);
    this.#lines = [this.#ofSites, this.#ofClients];
  }

  /**
   * Runs work when it is its turn. Rejects with an AuthError `too_many_unknown_keys` where too much work of its unit waits, or
   * `signal` aborts first.
   */
  async run<Value>(caller: Caller, cost: number, work: () => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    const unit = unitOf(caller);
    const line = caller.client === undefined ? this.#ofSites : this.#ofClients;
    // The search for what is next is as long as what waits: a flood finds no room, and does not begin it.
    const hasRoom = !line.units.has(unit) && this.#running.hasRoom(unit, cost);
    if (hasRoom && this.#isBeforeNext(unit)) this.#start(unit, cost);
    else await this.#turn(line, unit, cost, signal);
    try {
      return await work();
    } finally {
      this.#running.take(unit, -cost);
      this.#startNext();
    }
  }

  #start(unit: string, cost: number): void {
    this.#running.take(unit, cost);
    this.#served.add(unit, cost);
  }

  #turn(line: Line, unit: string, cost: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      // RFC 6585 section 4: an anonymous caller can cause it, so it is not a 5xx.
      const details = { privateDetail: `too many ${this.#what} wait`, retryAfterSeconds: 1 };
      const turnAway = (): void => reject(new AuthError('too_many_unknown_keys', details));
      const waiting = { unit, cost, start: resolve, turnAway };
      if (!line.add(waiting)) turnAway();
      signal?.addEventListener('abort', () => line.remove(waiting) && turnAway());
    });
  }

  #next(): Waiting | undefined {
    const [first, second] = this.#lines;
    return first?.next(this.#running, this.#served) ?? second?.next(this.#running, this.#served);
  }

  #isBeforeNext(unit: string): boolean {
    const next = this.#next();
    return !next || this.#served.of(unit) < this.#served.of(next.unit);
  }

  #startNext(): void {
    for (;;) {
      const next = this.#next();
      if (!next || !this.#running.hasRoom(next.unit, next.cost)) return;
      if (this.#lines[0]?.remove(next)) this.#lines.reverse();
      else this.#lines[1]?.remove(next);
      this.#start(next.unit, next.cost);
      next.start();
    }
  }
}

/** What each unit was served of late: halved whenever as much was served as can wait. */
class Served {
  readonly #costs = new Map<string, number>();
  readonly #period: number;
  #left: number;

  constructor(period: number) {
    this.#period = this.#left = period;
  }

  of(unit: string): number {
    return this.#costs.get(unit) ?? 0;
  }

  add(unit: string, cost: number): void {
    this.#costs.set(unit, this.of(unit) + cost);
    this.#left -= cost;
    if (this.#left > 0) return;
    this.#left = this.#period;
    for (const [each, served] of this.#costs) this.#costs.set(each, served / 2);
    for (const [each, served] of this.#costs) if (served < 1) this.#costs.delete(each);
  }
}

type Waiting = { readonly unit: string; readonly cost: number; start(): void; turnAway(): void };

/** Work that waits, by unit, none of which is empty. */
class Line {
  readonly units = new Map<string, Waiting[]>();
  #room: number;

  constructor(limit: number) {
    this.#room = limit;
  }

  /** Of the unit that was served least: of one that runs already, only what it has room for beside that. */
  next(running: Places, served: Served): Waiting | undefined {
    let next: Waiting | undefined;
    for (const [first] of this.units.values()) {
      if (!first || (running.holds(first.unit) && !running.hasRoom(first.unit, first.cost))) continue;
      if (!next || served.of(first.unit) < served.of(next.unit)) next = first;
    }
    return next;
  }

  /** Makes room by the last work of the unit with the most, where that keeps more than this one gets; else returns `false`. */
  add(waiting: Waiting): boolean {
    const ofUnit = this.units.get(waiting.unit) ?? [];
    while (this.#room < waiting.cost) {
      const last = [...this.units.values()].reduce((a, b) => (b.length > a.length ? b : a), ofUnit).at(-1);
      if (!last || (this.units.get(last.unit)?.length ?? 0) <= ofUnit.length + 1) return false;
      this.remove(last);
      last.turnAway();
    }
    ofUnit.push(waiting);
    this.units.set(waiting.unit, ofUnit);
    this.#room -= waiting.cost;
    return true;
  }

  /** Whether it was still waiting. */
  remove(waiting: Waiting): boolean {
    const ofUnit = this.units.get(waiting.unit);
    const at = ofUnit?.indexOf(waiting) ?? -1;
    if (!ofUnit || at < 0) return false;
    ofUnit.splice(at, 1);
    this.#room += waiting.cost;
    if (ofUnit.length === 0) this.units.delete(waiting.unit);
    return true;
  }
}
