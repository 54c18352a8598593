import type { Floor, GenerationSnapshot, GenerationSource, TakePage } from '../source';
import { SourceError } from '../source-error';
import { Pages, readDocument, readLines } from './body';
import type { SnapshotHead } from './body';
import { requireOk, withPath } from './client';
import type { HttpClient } from './client';

/** A response that a 304 refers to. */
interface Cached {
  readonly sinceMs: number;
  readonly etag: string;
  readonly head: SnapshotHead;
  readonly floors: Iterable<Floor>;
}

interface Received extends GenerationSnapshot {
  /** The relay that responded, which has its name in the entity tag too. */
  readonly relay: string | undefined;
}

/** Lines are read while they arrive, a document only as a whole. */
const ACCEPT = 'application/x-ndjson, application/json;q=0.9';
const RESPONSE_TYPE = /^application\/(x-ndjson|json)\s*(;|$)/i;

/** How much earlier one relay may have learned of a change than another one. */
const OVERLAP_MS = 60_000;

/** Makes the `read` of a feed: `GET /generations?since=`, with conditional requests (RFC 9110 section 13.1.2). */
export function snapshotReader(client: HttpClient, url: URL): GenerationSource['read'] {
  const relays = new Relays();
  let cached: Cached | undefined;

  async function read(wantedMs: number, takePage?: TakePage): Promise<GenerationSnapshot> {
    const expected = relays.of(wantedMs);
    let askedMs = wantedMs;
    let received = await request(askedMs, takePage);
    if (expected !== undefined && received.relay !== expected) {
      // A load balancer has chosen another relay, which has learned of each change at another time.
      askedMs = Math.max(1, wantedMs - OVERLAP_MS);
      received = await request(askedMs, takePage);
    }
    const { relay, ...snapshot } = received;
    const resumeMs = relays.resume(relay, snapshot.nowMs);
    // Not earlier than the request, unless the clock of the feed has stepped back.
    const nowMs = snapshot.nowMs >= Math.floor(askedMs) ? Math.max(snapshot.nowMs, wantedMs) : snapshot.nowMs;
    return { ...snapshot, nowMs, ...(resumeMs !== undefined && { resumeMs }) };
  }

  async function request(wantedMs: number, takePage?: TakePage): Promise<Received> {
    const known = cached && covers(cached, wantedMs) ? cached : undefined;
    const sinceMs = known?.sinceMs ?? Math.max(0, Math.floor(wantedMs));
    const exchange = client.acquire();
    try {
      return await client.bounded(exchange, async (progress) => {
        const response = await client.get(exchange, withPath(url, '', { since: String(sinceMs) }), {
          accept: ACCEPT,
          ...(known && { 'if-none-match': known.etag }),
        });
        const via = relaysOf(response);
        const etag = response.headers.get('etag');
        const relay = via.via?.find((name) => etag?.startsWith(`"${name}.`));
        if (response.status === 304 && known) {
          return { ...known.head, floors: known.floors, ...ageOf(response), ...via, relay };
        }
        requireOk(response, RESPONSE_TYPE, 'application/x-ndjson or application/json', via.via);
        const pages = new Pages(takePage, progress);
        const head = await readBody(response, pages);
        const floors = pages.kept;
        // After a change `since` moves on, so that the responses stay small.
        cached = etag !== null && !known && floors ? { sinceMs, etag, head, floors } : undefined;
        return { ...head, floors: takePage ? [] : (floors ?? []), ...ageOf(response), ...via, relay };
      });
    } finally {
      client.release(exchange);
    }
  }

  return read;
}

const MAX_RELAYS_KNOWN = 1_000;

/**
 * The times from which reads go on at a relay. What moves there later has a later time, so no overlap is needed, as long
 * as the next response comes from the same relay: its number is the fraction of the ms.
 */
class Relays {
  readonly #names: string[] = [];

  resume(relay: string | undefined, nowMs: number): number | undefined {
    if (relay === undefined) return undefined;
    const known = this.#names.indexOf(relay) + 1;
    if (known === 0 && this.#names.length >= MAX_RELAYS_KNOWN) return undefined;
    return nowMs + (known || this.#names.push(relay)) / 1_024;
  }

  /** The relay at which a read goes on. */
  of(resumeMs: number): string | undefined {
    return this.#names[(resumeMs % 1) * 1_024 - 1];
  }
}

/**
 * Whether a cached response is also right for a read from `wantedMs`: the entity tag belongs to the URL, so the same
 * `since` is sent until something changes. The first, whole response is reused for another whole one only.
 */
function covers({ sinceMs }: Cached, wantedMs: number): boolean {
  return sinceMs === wantedMs || (sinceMs > 0 && sinceMs < wantedMs);
}

/** @throws SourceError when the snapshot is not complete and valid in every part. */
function readBody(response: Response, pages: Pages): Promise<SnapshotHead> {
  const isLines = /^application\/x-ndjson/i.test(response.headers.get('content-type') ?? '');
  const chunks = (response.body ?? []) as AsyncIterable<Uint8Array>;
  return isLines ? readLines(chunks, pages) : readDocument(chunks, pages);
}

/**
 * How old the floors were when the response was sent (RFC 9111 section 5.1): relays and caches add their own age.
 *
 * @throws SourceError when the age is not a number of seconds.
 */
function ageOf({ headers }: Response): { readonly ageMs?: number } {
  const age = headers.get('age');
  if (age === null) return {};
  const seconds = age.split(',').map((text) => (/^\d{1,10}$/.test(text.trim()) ? Number(text) : NaN));
  const longest = Math.max(...seconds);
  if (!Number.isFinite(longest)) throw new SourceError('responded with an Age that is not a number of seconds');
  return { ageMs: longest * 1000 };
}

/** More can only be a loop. */
const MAX_RELAYS = 64;

/** Pseudonyms of what the response came through, the nearest last (RFC 9110 section 7.6.3). */
function relaysOf({ headers }: Response): { readonly via?: readonly string[] } {
  const via = headers.get('via');
  if (via === null) return {};
  // The comments of proxies may contain commas.
  const entries = via.replace(/\([^()]*\)/g, '').split(',', MAX_RELAYS + 1);
  if (entries.length > MAX_RELAYS) throw new SourceError(`came through more than ${MAX_RELAYS} relays or proxies`);
  return { via: entries.flatMap((entry) => entry.trim().split(/\s+/)[1] ?? []) };
}
