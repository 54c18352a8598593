/**
 * Reads a body whole, up to a limit. Counts what arrives, because a Content-Length is only a claim.
 *
 * @returns `undefined` when the body is larger; the rest of it is not read
 */
export async function readBody(chunks: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer | undefined> {
  const received: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.byteLength;
    if (length > maxBytes) return undefined;
    received.push(chunk);
  }
  return Buffer.concat(received);
}
