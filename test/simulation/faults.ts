/** A fault of one line, planted into a copy of the code. */
export interface PlantedFault {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** A world that shows it: found by `npm run simulate -- --planted`. */
  readonly seed: number;
}

const fault = (name: string, file: string, from: string, to: string, seed: number): PlantedFault => ({
  ...{ name, file: `src/${file.includes('stores/') ? file : `gate/generation/${file}`}`, from, to, seed },
});

const PUBLISHER = 'stores/publisher.ts';

export const FAULTS: readonly PlantedFault[] = [
  // The publisher.
  fault(
    'a closed publisher goes on',
    PUBLISHER,
    "if (this.#isClosed) throw new SourceError('the publisher is closed');",
    '',
    30,
  ),
  fault(
    'an epoch is kept over a mark that another wrote',
    PUBLISHER,
    'if (!isSameMark(found, mark)) return this.#lost(found);',
    '',
    3,
  ),
  fault('an epoch is kept after a unit without a response', PUBLISHER, '    this.#last = undefined;\n', '', 7),
  fault(
    'a mark calls the log complete while changes are left',
    PUBLISHER,
    '=== UNIT_SIZE) return { changes, isAll: false };',
    '=== UNIT_SIZE) return { changes, isAll };',
    65,
  ),
  fault(
    'a change of the future does not keep the log from being complete',
    PUBLISHER,
    'isAll &&= change[1] > nowMs + AWAITED_MS;',
    '',
    105,
  ),
  fault(
    'a change is no longer pending before it is in the log',
    PUBLISHER,
    '    const found = await this.#append(changes, { expected, mark });\n',
    '    for (const change of changes) this.#pending.delete(keyOf(change));\n    const found = await this.#append(changes, { expected, mark });\n',
    3,
  ),
  fault(
    'a new epoch calls the log complete at once',
    PUBLISHER,
    'unit: 1, completeMs: 0, keptMs',
    'unit: 1, completeMs: this.#options.clock(), keptMs',
    1,
  ),
  fault(
    'the record is not read again',
    PUBLISHER,
    'for (const change of record) {',
    'for (const change of this.#writtenMs === undefined ? record : []) {',
    3,
  ),
  fault(
    'the mark does not move after the clock was set back',
    PUBLISHER,
    'nowMs < this.#completeMs ? this.#completeMs + 1 : nowMs',
    'nowMs',
    4,
  ),
  fault('every change says that it is published', PUBLISHER, 'return !isPending();', 'return true;', 1),
  // The follower.
  fault(
    'a floor of the future hides the older one',
    'follow-log.ts',
    'this.#floors.keep(clientId, generation, nowMs);',
    '',
    2,
  ),
  fault(
    'a mark counts before the end is reached',
    'freshness.ts',
    'if (end && mark) this.#noteMark',
    'if (mark) this.#noteMark',
    11,
  ),
  fault(
    'a mark that does not move counts',
    'freshness.ts',
    'mark.completeMs > before.completeMs',
    'mark.completeMs >= before.completeMs',
    33,
  ),
  fault(
    'the time in a mark does not count',
    'freshness.ts',
    'isAhead ? nowMs : Math.min(nowMs, mark.completeMs + skewMs)',
    'nowMs',
    11,
  ),
  fault(
    'a negative age counts as fresh',
    'freshness.ts',
    'return ageMs < 0 || ageMs > this.#limits.maxStalenessMs;',
    'return ageMs > this.#limits.maxStalenessMs;',
    2,
  ),
  fault(
    'the age of a read is not compared',
    'freshness.ts',
    'return ageMs < 0 || ageMs > this.#limits.maxStalenessMs;',
    'return ageMs < 0;',
    1,
  ),
  fault('a read is as young as its response', 'freshness.ts', 'this.#readMs = startedMs;', 'this.#readMs = nowMs;', 1),
  fault(
    'silence does not count',
    'freshness.ts',
    "return nowMs - heardMs > this.#limits.maxSilenceMs ? 'silent' : 'fresh';",
    "return 'fresh';",
    11,
  ),
  fault(
    'after an outage no mark is waited for',
    'freshness.ts',
    'if (this.#hasMark && isOutageOver)',
    'if (this.#hasMark && this.#readMs === undefined)',
    32,
  ),
  fault(
    'silence begins anew after a step of the clock',
    'freshness.ts',
    'this.#heardMs = Math.min(this.#heardMs, nowMs);',
    'this.#heardMs = nowMs;',
    11,
  ),
  fault(
    'how long changes are kept is not compared',
    'freshness.ts',
    'this.#mark === undefined || this.#mark.keptMs >= this.#limits.lifetimeMs',
    'true',
    49,
  ),
  fault('what was of the future is not read again', 'follow-log.ts', 'this.#readAgain(nowMs);\n    }', '}', 5),
  fault(
    'a reader that hangs is not replaced',
    'follow-log.ts',
    'if (!this.#isClosed) this.#reader = this.#open();\n      return',
    'return',
    1,
  ),
  fault(
    'floors of the future are in force',
    'follow-log.ts',
    'if (!isInFuture(generation, nowMs, skewMs)) return',
    'if (generation < 1e15) return',
    5,
  ),
  fault(
    'a source that responds before its wait is over is asked without a pause',
    'follow-log.ts',
    'if (batch.end && !isNew && waitMs > 0 && this.#pauseMs() > 0) await round;',
    '',
    99,
  ),
  fault(
    'stale floors refuse nothing',
    'follower.ts',
    "    if (state === 'fresh' && !isPending) {",
    "    if (state !== 'starting' && !isPending) {",
    1,
  ),
  // Floors.
  fault(
    'a later floor replaces a higher one',
    'floors.ts',
    'if (generation <= (this.get(clientId) ?? -1)) return false;',
    'if (generation === this.get(clientId)) return false;',
    5,
  ),
  fault(
    'a floor in the older map does not count',
    'floors.ts',
    'Math.max(this.#current.get(clientId) ?? -1, this.#previous?.get(clientId) ?? -1)',
    'this.#current.get(clientId) ?? -1',
    4,
  ),
  fault(
    'floors are forgotten at each look',
    'floors.ts',
    'if (steadyMs - this.#turnedMs < this.lifetimeMs) return;',
    'if (steadyMs - this.#turnedMs < 1_000) return;',
    1,
  ),
  fault(
    'a token of the floor itself is refused',
    'follower.ts',
    'generation >= floor) return floor;',
    'generation > floor) return floor;',
    1,
  ),
  fault(
    'a pending floor is forgotten when its time has come',
    'floors.ts',
    '      this.raise(clientId, floor);\n',
    '',
    19,
  ),
  // The log in memory.
  fault(
    'a unit is not compared with the mark',
    'memory.ts',
    'if (unit && !isSameMark(unit.expected, this.mark)) return false;',
    '',
    40,
  ),
  fault(
    'a position of another log is kept',
    'memory.ts',
    'owner === this.#history ? Number(number) - this.#first : 0',
    'Number(number ?? this.#first) - this.#first',
    25,
  ),
  fault(
    'what does not fit into a page is left out',
    'memory.ts',
    'const position = `${this.#history}-${this.#first + from + found.length}`;',
    'const position = `${this.#history}-${this.#first + this.#entries.length}`;',
    67,
  ),
  fault(
    'what was appended during a wait is not taken',
    'memory.ts',
    '      return (page = entries().read(page.position));',
    '      const left = page;\n      page = entries().read(page.position);\n      return left;',
    13,
  ),
  fault(
    'a position is one further than what was read',
    'memory.ts',
    'const position = `${this.#history}-${this.#first + from + found.length}`;',
    'const position = `${this.#history}-${this.#first + from + found.length + 1}`;',
    2,
  ),
  // The log over HTTP.
  fault(
    'the time of a mark is taken from the wrong member',
    'http/log.ts',
    'complete_ms: completeMs,',
    'kept_ms: completeMs,',
    2,
  ),
  fault(
    'a response is not held for its time',
    'http/handler.ts',
    'const timer = schedule(respond, waitMs);',
    'const timer = schedule(respond, 3_600_000);',
    2,
  ),
];
