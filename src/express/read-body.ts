import type { GateRequest } from './http';

/**
 * Reads a body as text, up to a limit; takes what a raw or text parser has read before. `undefined` when it is larger.
 */
export async function readBody(req: GateRequest, maxBytes: number): Promise<string | undefined> {
  if (typeof req.body === 'string' || Buffer.isBuffer(req.body)) {
    return req.body.length > maxBytes ? undefined : req.body.toString();
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= maxBytes) chunks.push(chunk);
  }
  return length > maxBytes ? undefined : Buffer.concat(chunks).toString('utf8');
}
