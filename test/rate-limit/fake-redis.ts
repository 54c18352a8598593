import { runInNewContext } from 'node:vm';
import type { Clock } from '../../src/core/clock';
import type { RedisCommands } from '../../src/rate-limit/shared-store';

interface Entry {
  value: number;
  endMs: number;
}

/** Runs the scripts on counts with an end; `fail` replaces the reply. */
export class FakeRedis implements RedisCommands {
  readonly #clock: Clock;
  readonly entries = new Map<string, Entry>();
  readonly sent: string[] = [];
  fail: (() => Promise<unknown>) | undefined;
  closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  send([command = '', script = '', keys = '', key = '', argument = '']: readonly string[]): Promise<unknown> {
    this.sent.push(`${command} ${keys} ${key}`);
    if (this.fail) return this.fail();
    const call = (name: string, ...args: readonly [string, number?]) => this.#commands[name]?.(...args);
    return Promise.resolve(runInNewContext(asJavaScript(script), { call, KEYS: key, ARGV: argument }));
  }

  close(): void {
    this.closed = true;
  }

  count(key: string): number | undefined {
    return this.#entry(key)?.value;
  }

  #entry(key: string): Entry | undefined {
    const entry = this.entries.get(key);
    return entry && entry.endMs > this.#clock() ? entry : undefined;
  }

  #add(key: string, change: number): number {
    const entry = this.#entry(key) ?? { value: 0, endMs: Infinity };
    this.entries.set(key, entry);
    return (entry.value += change);
  }

  readonly #commands: Readonly<Record<string, (key: string, argument?: number) => number>> = {
    INCR: (key) => this.#add(key, 1),
    DECR: (key) => this.#add(key, -1),
    DEL: (key) => Number(this.entries.delete(key)),
    EXISTS: (key) => (this.#entry(key) ? 1 : 0),
    PTTL: (key) => {
      const { endMs } = this.#entry(key) ?? { endMs: NaN };
      if (Number.isNaN(endMs)) return -2;
      return endMs === Infinity ? -1 : endMs - this.#clock();
    },
    PEXPIRE: (key, ms = 0) => {
      const entry = this.#entry(key);
      if (entry) entry.endMs = this.#clock() + ms;
      return entry ? 1 : 0;
    },
  };
}

/** The Lua of these scripts is JavaScript in other words. */
function asJavaScript(lua: string): string {
  const words: readonly (readonly [RegExp, string])[] = [
    [/\bif\b/g, 'if ('],
    [/\bthen\b/g, ') {'],
    [/\bend\b/g, '}'],
    [/\blocal\b/g, 'let'],
    [/\btonumber\b/g, 'Number'],
    [/redis\.call/g, 'call'],
    [/(KEYS|ARGV)\[1\]/g, '$1'],
    [/return \{(.*)\}/g, 'return [$1]'],
  ];
  return `(() => { ${words.reduce((text, [word, replacement]) => text.replace(word, replacement), lua)} })()`;
}
