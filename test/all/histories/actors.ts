import { systemSchedule } from '../../../src/core/clock';
import { createPublisher } from '../../../src/auth-server/generations/publisher';
import { keepSentinel } from '../../../src/auth-server/generations/sentinel';
import type { AuthServerSettings } from '../../../src/auth-server/options';
import type { Store } from '../../../src/auth-server/storage/store';
import type { PublishingSource } from '../../../src/generation';
import { recordingLogger } from '../../support/log';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import type { Book } from './book';
import type { Random } from './random';
import type { Connected, HistoryStore } from './stores';

/** A wrong source in place of the right one, to prove that a history finds it. */
export type Plant = (source: PublishingSource, role: 'publisher' | 'reader') => PublishingSource;

/** What every actor works with. */
export interface ActorDependencies {
  readonly store: HistoryStore;
  readonly book: Book;
  readonly random: Random;
  readonly plant: Plant;
}

/** One process: it reaches the store through a wire of its own, and a kill cuts that in the middle of a command. */
export abstract class Actor {
  wire: TcpProxy | undefined;
  protected connected: Connected | undefined;
  #fault: Promise<void> = Promise.resolve();

  constructor(
    protected readonly dependencies: ActorDependencies,
    private readonly role: 'publisher' | 'reader',
  ) {}

  async start(): Promise<void> {
    const { store, plant } = this.dependencies;
    this.wire = await startTcpProxy(store.port);
    // Another server may have become the primary in the meantime.
    this.wire.switchTo(store.port);
    this.connected = store.connect(this.wire.port);
    this.run(plant(this.connected.source, this.role));
  }

  /** One fault at a time. */
  suffer(fault: () => Promise<void>): Promise<void> {
    return (this.#fault = this.#fault.then(fault));
  }

  /** Nothing is said goodbye to: the store sees connections that end. */
  async kill(): Promise<void> {
    const { wire, connected } = this;
    this.wire = this.connected = undefined;
    wire?.cut();
    this.halt();
    await connected?.end().catch(() => undefined);
    await wire?.close();
  }

  protected abstract run(source: PublishingSource): void;
  protected abstract halt(): void;
}

/** Changes that one publisher has in flight. */
const WORKERS = 8;
const RETRY_MS = 20;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Publishes as `tillgate generations publish` does, until the store has acknowledged: nothing repeats a floor later. */
export class Publisher extends Actor {
  /** Changes are made while this is true. */
  isBusy = true;
  #life = {};
  #idle: Promise<unknown> = Promise.resolve();

  constructor(
    dependencies: ActorDependencies,
    private readonly clientIds: readonly string[],
  ) {
    super(dependencies, 'publisher');
  }

  /** Resolves once nothing is in flight. */
  settled(): Promise<unknown> {
    return this.#idle;
  }

  protected run(source: PublishingSource): void {
    const life = (this.#life = {});
    this.#idle = Promise.all(Array.from({ length: WORKERS }, (_, worker) => this.#work(source, life, worker)));
  }

  protected halt(): void {
    this.#life = {};
  }

  async #work(source: PublishingSource, life: object, worker: number): Promise<void> {
    const { book, random } = this.dependencies;
    const own = this.clientIds.filter((_, index) => index % WORKERS === worker);
    while (this.isBusy && life === this.#life) {
      const clientId = random.pick(own);
      const generation = book.issue(clientId);
      while (life === this.#life) {
        if (await this.#publish(source, clientId, generation)) break;
        await pause(RETRY_MS);
      }
    }
  }

  async #publish(source: PublishingSource, clientId: string, generation: number): Promise<boolean> {
    try {
      await source.publish(clientId, generation);
    } catch {
      return false;
    }
    this.dependencies.book.acknowledge(clientId, generation);
    return true;
  }
}

/**
 * The publishing half of the embedded token server, with the code that it runs: its credentials outlive a kill, so it
 * publishes again what the store has lost.
 */
export class TokenServer extends Actor {
  isBusy = true;
  #rows = new Map<string, { clientId: string; generation: number; movedAt: number }>();
  #publisher: ReturnType<typeof createPublisher> | undefined;
  #stop: Promise<() => void> | undefined;

  constructor(
    dependencies: ActorDependencies,
    private readonly clientIds: readonly string[],
  ) {
    super(dependencies, 'publisher');
  }

  /** Whether the store has acknowledged every change. */
  get isDone(): boolean {
    return this.#publisher?.isPending() === false;
  }

  /** The latest generation of each client, which the store must have in the end whatever it has lost meanwhile. */
  get floors(): ReadonlyMap<string, number> {
    return new Map([...this.#rows].map(([clientId, { generation }]) => [clientId, generation]));
  }

  protected run(real: PublishingSource): void {
    const { book } = this.dependencies;
    const source: PublishingSource = {
      ...real,
      async publish(clientId, generation) {
        await real.publish(clientId, generation);
        book.acknowledge(clientId, generation);
      },
    };
    const settings = { generationSource: source, schedule: systemSchedule, logger: recordingLogger() };
    const publisher = createPublisher(settings);
    this.#publisher = publisher;
    const store = { state: { clients: this.#rows }, nowMs: () => Date.now() };
    this.#stop = keepSentinel(settings as unknown as AuthServerSettings, store as unknown as Store, publisher);
    void this.#work(publisher);
  }

  protected halt(): void {
    this.#publisher?.close();
    this.#publisher = undefined;
    void this.#stop?.then((stop) => stop());
  }

  async #work(publisher: ReturnType<typeof createPublisher>): Promise<void> {
    const { book, random } = this.dependencies;
    while (this.isBusy && publisher === this.#publisher) {
      const clientId = random.pick(this.clientIds);
      const generation = book.issue(clientId);
      this.#rows.set(clientId, { clientId, generation, movedAt: generation });
      await publisher.publish([[clientId, generation]]);
      // As many as a PATCH per event loop turn would be a flood, while the store is away.
      if (publisher.isPending(clientId)) await pause(RETRY_MS);
    }
  }
}
