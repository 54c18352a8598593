import type { Fetch } from '../../src/gate/net/http';
import { sendOverNode } from '../../src/gate/net/node-http';

/** The gate's own client as a `fetch`: in a process that has used the global one, the gate prefers that. */
export const fetchOverNode: Fetch = async (url, { signal, headers, body }) => {
  const form = body as string | undefined;
  const request = { signal: signal as AbortSignal, headers: headers as Record<string, string>, form };
  const { header, ...response } = await sendOverNode(url, request);
  return { ...response, headers: { get: header } } as unknown as Response;
};
