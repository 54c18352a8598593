import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Batch, Change, GenerationSource, LogReader, Mark, Unit } from '../../src/gate/generation/log';
import type { Fetch } from '../../src/gate/net/http';
import { Position } from './engine';
import type { Engine } from './engine';
import type { Random } from './random';
import type { VirtualTime } from './time';

/** What can be wrong between two machines. `dead`: neither requests nor responses arrive, and no one is told. */
export type LinkFault = 'cut' | 'dead' | 'loses responses' | 'slow';

/** What messages need of a link. */
export type Wire = Pick<Link, 'send' | 'receive'>;

/** Called with what is appended over a link, for the oracle; the returned function is called with the mark that the log has then. */
export type Witness = (changes: readonly Change[], unit: Unit | undefined) => (mark: Mark | undefined) => void;

/** A response that takes longer counts as a fault. */
const NORMAL_MS = 40;

/** A connection between two machines. What is under way when it breaks may arrive, late. */
export class Link {
  fault: LinkFault | undefined;
  slowMs = 0;
  /** Since when it is whole. */
  wholeSinceMs = 0;
  readonly #time: VirtualTime;
  readonly #random: Random;

  constructor(time: VirtualTime, random: Random) {
    this.#time = time;
    this.#random = random;
  }

  break(fault: LinkFault, slowMs = 0): void {
    [this.fault, this.slowMs, this.wholeSinceMs] = [fault, slowMs, Infinity];
  }

  mend(): void {
    if (this.fault === undefined) return;
    [this.fault, this.slowMs, this.wholeSinceMs] = [undefined, 0, this.#time.nowMs];
  }

  async send(): Promise<void> {
    await this.#time.pause(this.#delayMs());
    if (this.fault === 'cut') throw new Error('the connection was refused');
    if (this.fault === 'dead') await never();
  }

  async receive(): Promise<void> {
    await this.#time.pause(this.#delayMs());
    if (this.fault === 'cut') throw new Error('the connection was reset');
    if (this.fault === 'dead' || this.fault === 'loses responses') await never();
  }

  #delayMs(): number {
    return this.#random.int(1, this.fault === 'slow' ? this.slowMs : NORMAL_MS);
  }
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** How the engine of a world responds. */
export interface EngineHabits {
  /** Entries in a page. */
  readonly pageSize: number;
  /** Whether a mark that moved ends the wait of a reader, as over HTTP; else an entry does, as in Redis. */
  readonly wakesOnMark: boolean;
  /** Whether it responds before the wait is over. */
  readonly isHasty: boolean;
}

/** The log of an engine, over a link. */
export function engineSource(
  engine: () => Engine,
  link: Wire,
  time: VirtualTime,
  habits: EngineHabits,
  witness?: Witness,
): GenerationSource {
  return {
    mark: true,
    reader: () => engineReader(engine, link, time, habits),
    async append(changes, unit) {
      const applied = witness?.(changes, unit);
      await link.send();
      const mark = engine().apply(changes, unit);
      applied?.(mark);
      await link.receive();
      return mark;
    },
  };
}

function engineReader(
  engine: () => Engine,
  link: Wire,
  time: VirtualTime,
  { pageSize, wakesOnMark, isHasty }: EngineHabits,
): LogReader {
  let position = new Position();
  let isClosed = false;
  let endWait = (): void => undefined;

  /** Waits until the engine has something new, or the time is over. */
  async function wait(asked: Engine, waitMs: number): Promise<void> {
    const { entries, mark } = asked.state;
    await new Promise<void>((resolve) => {
      const timer = time.schedule(done, waitMs);
      const stop = asked.subscribe(() => {
        const isNew = wakesOnMark ? asked.state.mark !== mark : asked.state.entries !== entries;
        if (isNew) done();
      });
      endWait = done;
      function done(): void {
        stop();
        timer.cancel();
        resolve();
      }
    });
  }

  return {
    async next(waitMs) {
      await link.send();
      const asked = engine();
      // The position is that of the last response that arrived.
      let moved = position.copy();
      let batch: Batch = moved.read(asked.state, pageSize);
      if (batch.changes.length === 0 && waitMs > 0 && !isHasty) {
        await wait(asked, waitMs);
        moved = position.copy();
        batch = moved.read(asked.state, pageSize);
      }
      if (!isClosed) await link.receive();
      if (isClosed) throw new Error('the reader is closed');
      position = moved;
      return batch;
    },
    close() {
      isClosed = true;
      endWait();
    },
  };
}

/** `fetch` to a handler of Node, over a link. */
export function fetchFrom(
  handler: () => ((req: IncomingMessage, res: ServerResponse) => void) | undefined,
  link: Wire,
): Fetch {
  return async (url, { signal }) => {
    await link.send();
    const serve = handler();
    if (!serve) throw new Error('nothing listens');
    const { pathname, search } = new URL(url);
    const { status, headers, text } = await new Promise<Received>((resolve) => {
      const { response, hangUp } = responseTo(resolve);
      signal?.addEventListener('abort', hangUp);
      serve({ method: 'GET', url: pathname.replace('/generations', '/') + search } as IncomingMessage, response);
    });
    await link.receive();
    if (signal?.aborted) throw new Error('the response came too late');
    // The class Headers of Node takes as long as everything else of a response.
    const get = (name: string): string | null => headers[name] ?? null;
    return { status, headers: { get }, body: bodyOf(text) } as unknown as Response;
  };
}

interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

function responseTo(done: (received: Received) => void): { response: ServerResponse; hangUp: () => void } {
  const headers: Record<string, string> = {};
  const closed: (() => void)[] = [];
  let status = 200;
  const response = {
    headersSent: false,
    setHeader(name: string, value: string) {
      headers[name.toLowerCase()] = value;
      return response;
    },
    writeHead(code: number, more: Record<string, string>) {
      status = code;
      for (const [name, value] of Object.entries(more)) headers[name.toLowerCase()] = value;
      return response;
    },
    end(text: string) {
      response.headersSent = true;
      done({ status, headers, text });
    },
    once: (_event: 'close', listener: () => void) => void closed.push(listener),
  };
  return {
    response: response as unknown as ServerResponse,
    hangUp: () => {
      for (const listener of closed) listener();
    },
  };
}

function bodyOf(text: string): object {
  return {
    // eslint-disable-next-line @typescript-eslint/require-await -- bodies are read asynchronously
    async *[Symbol.asyncIterator]() {
      yield Buffer.from(text);
    },
    cancel: () => Promise.resolve(),
  };
}
