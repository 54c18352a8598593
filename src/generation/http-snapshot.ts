import { isGeneration } from './generation';
import { requireOk } from './http-client';
import type { HttpClient } from './http-client';
import { withPath } from './http-target';
import type { Floor, GenerationSnapshot } from './source';
import { SourceError } from './source-error';

/** A million floors take some 70 MiB. */
const LARGEST_ANSWER_BYTES = 256 * 1024 * 1024;

interface Remembered {
  readonly sinceMs: number;
  readonly etag: string;
  readonly snapshot: GenerationSnapshot;
}

/** Makes the `read` of a token server: `GET /generations?since=`, asked conditionally (RFC 9110 section 13.1.2). */
export function snapshotReader(client: HttpClient, address: URL): (sinceMs: number) => Promise<GenerationSnapshot> {
  let remembered: Remembered | undefined;

  async function read(wantedMs: number): Promise<GenerationSnapshot> {
    const known = remembered && covers(remembered, wantedMs) ? remembered : undefined;
    const sinceMs = known?.sinceMs ?? Math.max(0, Math.floor(wantedMs));
    const exchange = client.acquire();
    try {
      return await client.bounded(exchange, async () => {
        const url = withPath(address, '', { since: String(sinceMs) });
        const condition = known && { 'if-none-match': known.etag };
        const response = await client.get(exchange, url, { accept: 'application/json', ...condition });
        if (response.status === 304 && known) return known.snapshot;
        requireOk(response, /^application\/json\s*(;|$)/i, 'application/json');
        const snapshot = parseSnapshot(await readBody(response));
        const etag = response.headers.get('etag');
        // After a change the time asked from moves on, so that the answers stay small.
        remembered = etag !== null && !known ? { sinceMs, etag, snapshot } : undefined;
        return snapshot;
      });
    } finally {
      client.release(exchange);
    }
  }

  return read;
}

/**
 * Whether an earlier answer can serve for a read from `wantedMs`: the entity tag belongs to the address, so the same
 * `since` is asked until something changes. The first, whole answer serves for another whole one only.
 */
function covers({ sinceMs }: Remembered, wantedMs: number): boolean {
  return sinceMs === wantedMs || (sinceMs > 0 && sinceMs < wantedMs);
}

async function readBody(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Counted while it arrives: a Content-Length is a claim only.
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    if (length > LARGEST_ANSWER_BYTES) throw new SourceError(`answered more than ${LARGEST_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseSnapshot(body: Uint8Array): GenerationSnapshot {
  const answer = parseJson(body) as { now?: unknown; floors?: unknown } | null;
  const { now, floors } = answer ?? {};
  if (!isGeneration(now)) throw new SourceError('answered no "now" in ms');
  if (!Array.isArray(floors)) throw new SourceError('answered no array "floors"');
  return { floors: floors.map(toFloor), nowMs: now };
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    // The parser's message quotes the answer.
    throw new SourceError('answered no valid JSON');
  }
}

function toFloor(entry: unknown, index: number): Floor {
  const { client_id, generation } = (entry ?? {}) as { client_id?: unknown; generation?: unknown };
  if (typeof client_id === 'string' && client_id !== '' && isGeneration(generation)) return [client_id, generation];
  throw new SourceError(`answered an entry that is no floor (floors[${index}])`);
}
