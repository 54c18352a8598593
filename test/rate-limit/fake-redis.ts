import type { RedisCommands } from '../../src/rate-limit/stores';

/** A Redis with the scripts of rate-limit-redis, by the time of `Date.now()`; `fail` replaces the reply. */
export class FakeRedis implements RedisCommands {
  readonly #entries = new Map<string, { hits: number; readonly endMs: number }>();
  readonly #scripts = new Set<string>();
  readonly sent: string[] = [];
  fail: (() => Promise<unknown>) | undefined;
  closed = false;

  async send([command = '', ...args]: readonly string[]): Promise<unknown> {
    this.sent.push(command);
    if (this.fail) return this.fail();
    if (command === 'SCRIPT') return this.#load(args[1] ?? '');
    const [sha = '', , key = '', windowMs] = args;
    if (!this.#scripts.has(sha)) throw new Error('NOSCRIPT No matching script. Please use EVAL.');
    return this.#increment(key, Number(windowMs));
  }

  close(): void {
    this.closed = true;
  }

  /** As `SCRIPT FLUSH`, and a server that has started again. */
  forgetScripts(): void {
    this.#scripts.clear();
  }

  set(key: string, hits: number): void {
    this.#entries.set(key, { hits, endMs: Date.now() + 60_000 });
  }

  hitsOf(key: string): number | undefined {
    return this.#entries.get(key)?.hits;
  }

  #load(text: string): string {
    const sha = `sha of ${text}`;
    this.#scripts.add(sha);
    return sha;
  }

  #increment(key: string, windowMs: number): readonly [number, number] {
    const known = this.#entries.get(key);
    const entry = known && known.endMs > Date.now() ? known : { hits: 0, endMs: Date.now() + windowMs };
    this.#entries.set(key, entry);
    return [++entry.hits, entry.endMs - Date.now()];
  }
}
