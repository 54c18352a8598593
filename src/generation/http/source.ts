import { systemClock, systemSchedule } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { consoleLogger } from '../../core/logger';
import { ownValue } from '../../core/objects';
import { readOptions } from '../../core/options';
import type { Fetch } from '../../token/keys/fetch-json';
import { FloorList } from '../floors';
import { HttpClient, httpTarget } from './client';
import { snapshotReader } from './snapshot';
import { streamWatch } from './stream';
import type { GenerationSource } from '../source';
import type { SourceDependencies } from '../source-url';

/** Options of `httpGenerations()`. */
export interface HttpGenerationsOptions extends Pick<Dependencies, 'fetch' | 'clock' | 'schedule' | 'logger'> {
  /**
   * URL of the token server's `/generations`; a URL without a path is completed. Credentials in it
   * (`https://id:secret@host`) are sent as HTTP Basic.
   */
  readonly url: string;
  /** Sent with every request, for example `{ authorization: 'Bearer ...' }`. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Accepts an `http:` URL on another host than loopback. Default `false`. */
  readonly allowHttp?: boolean | undefined;
  /** Longest time for one response, in ms. Default 5000. */
  readonly timeoutMs?: number | undefined;
}

const OPTIONS = ['url', 'headers', 'allowHttp', 'timeoutMs', 'fetch', 'clock', 'schedule', 'logger'] as const;

/** Floors of events that are kept for the next read. Further ones come with its response. */
const MAX_STREAMED = 1_000;

/**
 * The generations feed of a token server: snapshots with entity tags, and its event stream as the hint. An open
 * stream keeps the process alive until `close()`.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { httpGenerations } from 'tillgate/generations';
 *
 * const generations = httpGenerations({ url: 'https://login.example.com/generations' });
 * ```
 */
export function httpGenerations(options: HttpGenerationsOptions): GenerationSource {
  const given = readOptions('httpGenerations', options, OPTIONS);
  const target = httpTarget(given.string('url') ?? '', ownValue(options, 'headers'), given.boolean('allowHttp', false));
  const schedule = given.callable('schedule', systemSchedule);
  const client = new HttpClient({
    target,
    schedule,
    // Looked up at each call, so that an instrumented global is used.
    fetch: given.callable<Fetch>('fetch', (url, init) => fetch(url, init)),
    timeoutMs: given.number('timeoutMs', 5_000, { unit: 'ms', min: 1, max: 600_000 }),
  });
  const clock = given.callable('clock', systemClock);
  const logger = options.logger ?? consoleLogger;
  const read = snapshotReader(client, target.url);
  let streamed = new FloorList();
  return {
    async read(sinceMs, takePage) {
      const floors = streamed;
      streamed = new FloorList();
      // They are known one round trip before the response, which contains them again.
      if (takePage && floors.length > 0) await takePage(floors);
      return read(sinceMs, takePage);
    },
    watch: streamWatch({
      client,
      url: target.url,
      clock,
      schedule,
      logger,
      onFloor(clientId, generation) {
        if (streamed.length < MAX_STREAMED) streamed.add(clientId, generation);
      },
    }),
    close() {
      client.close();
      return Promise.resolve();
    },
  };
}

/** Makes the source for an `http://` or `https://` URL. */
export function sourceFromUrl(url: string, dependencies: SourceDependencies): GenerationSource {
  const { headers, allowHttp, fetch, clock, schedule, logger } = dependencies;
  return httpGenerations({ url, headers, allowHttp, fetch, clock, schedule, logger });
}
