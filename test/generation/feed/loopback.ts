import type { IncomingMessage, ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { generationsFeed, httpGenerations } from '../../../src/generation';
import type { GenerationsFeed, GenerationsFeedOptions, GenerationSource } from '../../../src/generation';
import type { FeedHandler } from '../../../src/generation/feed/handler';
import type { Fetch } from '../../../src/token/keys/fetch-json';
import { fakeTime, settle } from '../../support/fake-time';
import type { FakeTime } from '../../support/fake-time';
import { START, keptLog } from '../fixtures';
import type { KeptLog } from '../fixtures';

/** A response that becomes one of `fetch`, without a socket. */
class LoopbackResponse extends Writable {
  readonly #headers = new Headers();
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;
  #resolve: (response: Response) => void;
  headersSent = false;
  statusCode = 200;

  constructor(resolve: (response: Response) => void) {
    super();
    this.#resolve = resolve;
    this.on('error', () => undefined);
  }

  setHeader(name: string, value: string | number): this {
    this.#headers.set(name, String(value));
    return this;
  }

  getHeader(name: string): string | undefined {
    return this.#headers.get(name) ?? undefined;
  }

  writeHead(status: number, headers: Record<string, string> = {}): this {
    this.statusCode = status;
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, value);
    this.headersSent = true;
    const body = status === 304 ? null : new ReadableStream({ start: (controller) => void (this.#body = controller) });
    this.#resolve(new Response(body, { status, headers: this.#headers }));
    return this;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (!this.headersSent) this.writeHead(this.statusCode);
    this.#body?.enqueue(chunk);
    done();
  }

  override _final(done: () => void): void {
    if (!this.headersSent) this.writeHead(this.statusCode);
    this.#body?.close();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.writableFinished) this.#body?.error(new TypeError('terminated'));
    done(error);
  }
}

/** What stands between a reader and a feed: a test may cut it off, or replace the feed. */
export interface Link {
  /** `undefined`: nothing listens there. */
  feed: FeedHandler | undefined;
  readonly fetch: Fetch;
  /** Requests so far, without those for streams. */
  readonly requests: IncomingMessage[];
  /** Status and `Age` of each response. */
  readonly responses: string[];
  /** Ends what is open, as the death of the feed's process does. */
  cut(): void;
}

export function link(feed?: FeedHandler): Link {
  const open = new Set<LoopbackResponse>();
  const state: Link = {
    feed,
    requests: [],
    responses: [],
    async fetch(url, { headers, signal, method = 'GET' }) {
      const { feed: handler } = state;
      if (!handler) throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
      const path = new URL(url);
      const request = {
        url: path.pathname.replace('/generations', '') + path.search,
        method,
        headers: Object.fromEntries(new Headers(headers)),
      } as unknown as IncomingMessage;
      const response = await new Promise<Response>((resolve) => {
        const res = new LoopbackResponse(resolve);
        open.add(res);
        res.on('close', () => open.delete(res));
        signal?.addEventListener('abort', () => res.destroy());
        handler(request, res as unknown as ServerResponse);
      });
      if (!path.pathname.endsWith('/stream')) {
        state.requests.push(request);
        state.responses.push([response.status, response.headers.get('age')].join(' '));
      }
      return response;
    },
    cut() {
      for (const res of open) res.destroy();
    },
  };
  return state;
}

/** A source that reads through a link. */
export function through({ fetch }: Pick<Link, 'fetch'>, time: FakeTime, logger = keptLog()): GenerationSource {
  const { clock, schedule } = time;
  return httpGenerations({ url: 'https://relay.test/generations', fetch, clock, schedule, logger });
}

/** A relay on fake time. */
export interface StartedRelay {
  readonly time: FakeTime;
  readonly log: KeptLog;
  readonly feed: GenerationsFeed;
  /** To its own feed. */
  readonly link: Link;
}

export function startRelay(
  source: GenerationSource,
  time = fakeTime(START),
  options: Partial<GenerationsFeedOptions> = {},
): StartedRelay {
  const log = keptLog();
  const { clock, schedule } = time;
  const feed = generationsFeed({ source, clock, schedule, random: () => 0, logger: log, ...options });
  return { time, log, feed, link: link(feed) };
}

/** Lets everything happen that needs no time. */
export async function quiet(): Promise<void> {
  for (let turns = 0; turns < 40; turns++) await settle();
}

/** Time passes in steps, so that responses need none of it. */
export async function pass(time: FakeTime, ms: number, stepMs = 500): Promise<void> {
  for (let left = ms; left > 0; left -= stepMs) {
    await time.advance(Math.min(left, stepMs));
    await quiet();
  }
}
