import { ACCEPT, ANSWER_TYPE, ANSWER_TYPES, readSnapshot } from './http-answer';
import { requireOk } from './http-client';
import type { HttpClient } from './http-client';
import { withPath } from './http-target';
import type { GenerationSnapshot } from './source';

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
        const response = await client.get(exchange, url, { accept: ACCEPT, ...condition });
        if (response.status === 304 && known) return known.snapshot;
        requireOk(response, ANSWER_TYPE, ANSWER_TYPES);
        const snapshot = await readSnapshot(response);
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
