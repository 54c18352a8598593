import type { Timer } from '../core/clock';
import type { GateSettings } from '../verifier/read-options';
import { printable, type LoggedRefusal } from './refusal-log';

const PERIOD_MS = 60_000;

/** Counts repeated refusals: the first one of a key is logged immediately, and once a minute how many more came. */
export class RefusalCounter {
  readonly #settings: Pick<GateSettings, 'logger' | 'schedule'>;
  readonly #what: string;
  readonly #maxKeys: number;
  readonly #counts = new Map<string, { count: number; last: LoggedRefusal }>();
  #timer: Timer | undefined;
  #isClosed = false;

  /**
   * @param what - what has become of the requests: `refused`
   * @param maxKeys - keys that are counted one by one; further ones are counted by their reason
   */
  constructor(settings: Pick<GateSettings, 'logger' | 'schedule'>, what: string, maxKeys: number) {
    this.#settings = settings;
    this.#what = what;
    this.#maxKeys = maxKeys;
  }

  add(key: string, refusal: LoggedRefusal): void {
    const counts = this.#counts;
    const isCounted = counts.has(key) || counts.size < this.#maxKeys;
    const last = isCounted ? refusal : { ...refusal, issuer: undefined, clientId: undefined };
    const known = counts.get(isCounted ? key : refusal.reason);
    counts.set(isCounted ? key : refusal.reason, { count: known ? known.count + 1 : 0, last });
    if (known) return;
    this.#settings.logger.warn(printable(last), `request ${this.#what}`);
    if (!this.#isClosed) this.#timer ??= this.#settings.schedule(() => this.#endPeriod(), PERIOD_MS);
  }

  #endPeriod(): void {
    this.#timer = undefined;
    for (const [key, { count, last }] of this.#counts) {
      if (count === 0) this.#counts.delete(key);
      else this.#counts.set(key, { count: 0, last });
      this.#write(count, last);
    }
    if (this.#counts.size > 0) this.#timer = this.#settings.schedule(() => this.#endPeriod(), PERIOD_MS);
  }

  #write(count: number, last: LoggedRefusal): void {
    if (count === 0) return;
    const requests = count === 1 ? '1 more request' : `${count} more requests`;
    const line = printable(last.count === undefined ? last : { ...last, count });
    this.#settings.logger.warn(line, `${requests} ${this.#what}: ${last.reason}`);
  }

  /** Writes the counts that are pending. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const { count, last } of this.#counts.values()) this.#write(count, last);
    this.#counts.clear();
  }
}
