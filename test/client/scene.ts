import { createClient } from '../../src/client/index';
import type { Client, ClientOptions } from '../../src/client/types';

export const API = 'https://api.example.com/v1';
const TOKEN_URL = 'https://login.example.com/connect/token';
export const SECRET = 'p+ss:w%rd ä';

/** What the API says to a token: its number, counted from 1, and what the call is. */
type Api = (token: number, request: Sent) => Response | Promise<Response>;

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
  readonly headers: Headers;
  readonly atMs: number;
}

/** What a test sees, and what it changes. */
interface Scene {
  readonly client: Client;
  readonly tokenRequests: readonly Sent[];
  /** The calls that reached the API, each with the number of its token; 0 without one. */
  readonly calls: readonly (Sent & { readonly token: number })[];
  readonly sleeps: readonly number[];
  /** The token endpoint. */
  token: (number: number) => Response | Promise<Response>;
  readonly advance: (ms: number) => void;
}

/** A client in virtual time: a token endpoint that numbers its tokens, an API, and a clock that only `sleep()` moves. */
export function scene(api: Api, options: Partial<ClientOptions> = {}): Scene {
  let nowMs = 5_000;
  const tokenRequests: Sent[] = [];
  const calls: (Sent & { readonly token: number })[] = [];
  const sleeps: number[] = [];
  const state = {
    token: (number: number): Response | Promise<Response> =>
      Response.json({ access_token: `token-${number}`, token_type: 'Bearer', expires_in: 3600, scope: 'orders:read' }),
    advance: (ms: number) => void (nowMs += ms),
  };
  const fetch = async (input: unknown, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted();
    const request = typeof input === 'object' && input !== null && 'url' in input ? (input as Request) : undefined;
    const url = request?.url ?? String(input);
    const sent = { url, init, headers: new Headers(init.headers ?? request?.headers), atMs: nowMs };
    await Promise.resolve();
    if (url === TOKEN_URL) return state.token(tokenRequests.push(sent));
    const token = Number(/^Bearer token-(\d+)$/.exec(sent.headers.get('authorization') ?? '')?.[1] ?? 0);
    calls.push({ ...sent, token });
    return api(token, sent);
  };
  const client = createClient({
    tokenUrl: TOKEN_URL,
    clientId: 'till:1',
    clientSecret: SECRET,
    scope: 'orders:read',
    baseUrl: API,
    fetch,
    clock: () => nowMs,
    sleep: async (ms) => {
      sleeps.push(ms);
      await new Promise((resolve) => setImmediate(resolve));
      nowMs += ms;
    },
    ...options,
  });
  return Object.assign(state, { client, tokenRequests, calls, sleeps });
}

/** The refusal of a gate. */
export function refused(challenge = 'Bearer realm="api", error="invalid_token", error_description="No."'): Response {
  return new Response('{}', { status: 401, headers: { 'WWW-Authenticate': challenge } });
}

export const ok = (): Response => Response.json({ orders: [] });
