import { eventually } from '../support/eventually';
import { Publisher, TokenServer } from './actors';
import type { Actor, ActorDependencies, Plant } from './actors';
import { Book } from './book';
import { seededRandom } from './random';
import { Reader } from './reader';
import type { Findings } from './reader';
import type { HistoryStore } from './stores';

/** What happens in one history. */
export interface HistoryOptions {
  readonly seed: number;
  /** Changes that are acknowledged. */
  readonly changes: number;
  readonly faults: number;
  readonly plant?: Plant;
}

/** What became of it. */
export interface Outcome extends Findings {
  readonly changes: number;
  /** Acknowledged changes that the store may lose by its promise, of those before a kill. */
  readonly excused: number;
  /** Floors that were acknowledged, and that the store should have and has not. */
  readonly lost: number;
  /** Comparisons of what a reader refuses with what it has to refuse. */
  readonly checks: number;
  readonly faults: Readonly<Record<string, number>>;
}

const PUBLISHERS = 3;
const READERS = 4;
const CLIENTS_PER_PUBLISHER = 64;
const CHECK_EVERY_MS = 25;
/** For the next changes, in the middle of faults and next to other tests. */
const PATIENCE_MS = 60_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs changes and faults against a store until the changes are made, and checks the store and all readers meanwhile. */
export async function runHistory(store: HistoryStore, options: HistoryOptions): Promise<Outcome> {
  const history = new History(store, options);
  try {
    return await history.run();
  } finally {
    await history.end();
  }
}

class History {
  readonly #store: HistoryStore;
  readonly #options: HistoryOptions;
  readonly #dependencies: ActorDependencies;
  readonly #publishers: readonly Publisher[];
  readonly #tokenServer: TokenServer;
  readonly #readers: readonly Reader[];
  readonly #findings = { revived: 0, missed: 0, lost: 0 };
  readonly #faults: Record<string, number> = {};
  /** The store has one fault at a time. */
  #storeFault: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: HistoryStore, options: HistoryOptions) {
    const owned = Array.from({ length: PUBLISHERS + 1 }, (_, publisher) =>
      Array.from({ length: CLIENTS_PER_PUBLISHER }, (__, client) => `client-${publisher}-${client}`),
    );
    const [ofTokenServer = [], ...ofPublishers] = owned;
    const random = seededRandom(options.seed);
    const plant = options.plant ?? ((source) => source);
    this.#dependencies = { store, book: new Book(owned.flat()), random, plant };
    this.#store = store;
    this.#options = options;
    this.#tokenServer = new TokenServer(this.#dependencies, ofTokenServer);
    this.#publishers = ofPublishers.map((clientIds) => new Publisher(this.#dependencies, clientIds));
    this.#readers = Array.from({ length: READERS }, () => new Reader(this.#dependencies));
  }

  get #actors(): readonly Actor[] {
    return [this.#tokenServer, ...this.#publishers, ...this.#readers];
  }

  async run(): Promise<Outcome> {
    const { book } = this.#dependencies;
    for (const actor of this.#actors) await actor.start();
    let next = 0;
    this.#timer = setInterval(() => this.#readers[next++ % READERS]?.check(this.#findings), CHECK_EVERY_MS);
    await this.#makeChanges();
    await this.#settle();
    const { faults, ...findings } = { ...this.#findings, faults: this.#faults };
    const checks = this.#readers.reduce((sum, reader) => sum + reader.checks, 0);
    return { ...findings, changes: book.changes, excused: book.excused, checks, faults };
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    await this.#storeFault.catch(() => undefined);
    for (const actor of this.#actors) await actor.kill();
  }

  /** One fault whenever so many changes more are made: a plan that the seed determines. */
  async #makeChanges(): Promise<void> {
    const { book, random } = this.#dependencies;
    const { changes, faults } = this.#options;
    const plan = Array.from({ length: faults }, () => random.between(changes / 50, changes)).sort((a, b) => a - b);
    const running: Promise<void>[] = [];
    for (const at of plan) {
      await eventually(`change ${at}`, () => book.changes >= at, PATIENCE_MS);
      running.push(this.#fault());
    }
    await eventually(`change ${changes}`, () => book.changes >= changes, PATIENCE_MS);
    await Promise.all(running);
  }

  /** After the last fault everything must come right by itself. */
  async #settle(): Promise<void> {
    const { book } = this.#dependencies;
    for (const publisher of this.#publishers) publisher.isBusy = false;
    this.#tokenServer.isBusy = false;
    await Promise.all(this.#publishers.map((publisher) => publisher.settled()));
    await eventually('the token server has published everything', () => this.#tokenServer.isDone);
    // Two checks of the sentinel: it finds what the store has lost, and publishes it.
    await pause(this.#store.isLossy ? 2_500 : 0);
    for (const [clientId, generation] of this.#tokenServer.floors) book.acknowledge(clientId, generation);
    const endMs = Date.now() + 5;
    for (const reader of this.#readers) {
      await eventually('a complete read of each reader', () => (reader.completeMs ?? 0) > endMs);
      reader.check(this.#findings);
    }
    await this.#checkStore();
  }

  /** What the store returns to a process that starts now. */
  async #checkStore(): Promise<void> {
    const { store, book } = this.#dependencies;
    const connected = store.connect(store.port);
    try {
      this.#findings.lost += await eventually('a whole read', async () => {
        const begunMs = Date.now();
        const snapshot = await connected.source.read(0).catch(() => undefined);
        return snapshot && book.missingFrom(new Map(snapshot.floors), begunMs).length;
      });
    } finally {
      await connected.end();
    }
  }

  async #fault(): Promise<void> {
    const { random } = this.#dependencies;
    const faults: Readonly<Record<string, () => Promise<void>>> = {
      'kill of the store': () => this.#atStore(() => this.#killStore()),
      'kill of a publisher': () => this.#killAndStart(random.pick(this.#publishers)),
      'kill of the token server': () => this.#killAndStart(this.#tokenServer),
      'kill of a reader': () => this.#killAndStart(random.pick(this.#readers)),
      cut: () => Promise.resolve(random.pick(this.#actors).wire?.cut()),
      'half-open': () => this.#freeze(random.pick(this.#actors)),
      delay: () => this.#delay(random.pick(this.#actors)),
      'repeated hints': () => this.#hint(),
      ...(this.#store.failOver && { promotion: () => this.#atStore(() => this.#failOver()) }),
    };
    // Each kind before any comes twice.
    const names = Object.keys(faults);
    const fewest = Math.min(...names.map((name) => this.#faults[name] ?? 0));
    const name = random.pick(names.filter((each) => (this.#faults[each] ?? 0) === fewest));
    this.#faults[name] = fewest + 1;
    await faults[name]?.();
  }

  #atStore(fault: () => Promise<void>): Promise<void> {
    return (this.#storeFault = this.#storeFault.then(fault));
  }

  async #killStore(): Promise<void> {
    const { store, book, random } = this.#dependencies;
    await store.kill(random.between(0, 100), (window) => book.excuse(window));
    await this.#checkStore();
  }

  async #failOver(): Promise<void> {
    const { store } = this.#dependencies;
    await store.failOver?.();
    for (const actor of this.#actors) actor.wire?.switchTo(store.port);
    await this.#checkStore();
  }

  #killAndStart(actor: Actor): Promise<void> {
    const pauseMs = this.#dependencies.random.between(0, 200);
    return actor.suffer(async () => {
      await actor.kill();
      await pause(pauseMs);
      await actor.start();
    });
  }

  #freeze(actor: Actor): Promise<void> {
    const ms = this.#dependencies.random.between(100, 1_000);
    return actor.suffer(async () => {
      actor.wire?.freeze();
      await pause(ms);
      actor.wire?.thaw();
    });
  }

  #delay(actor: Actor): Promise<void> {
    const { random } = this.#dependencies;
    const ms = random.between(200, 1_000);
    return actor.suffer(async () => {
      actor.wire?.delay(() => random.between(0, 60));
      await pause(ms);
      actor.wire?.delay(() => 0);
    });
  }

  async #hint(): Promise<void> {
    const { store, book, random } = this.#dependencies;
    const clientIds = Array.from({ length: 20 }, () => random.pick(book.clientIds));
    await store.hint(clientIds).catch(() => undefined);
  }
}
