import { Agent, request } from 'node:http';
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';

/** One request of a load. */
export interface Shot {
  readonly url: string;
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
  /** Default: a connection of its own. */
  readonly agent?: Agent;
  /** Address of this machine to send from. */
  readonly localAddress?: string;
}

/** What became of a request. */
export interface Outcome {
  /** 0: there was no complete response. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Why there was none. */
  readonly error: string | undefined;
  /** Whether it went out on a connection on which there had been a response before. */
  readonly reused: boolean;
  readonly startedAt: number;
  readonly ms: number;
}

/** Sends one request and never rejects. */
export function shoot({ url, method = 'GET', headers = {}, body = '', agent, localAddress }: Shot): Promise<Outcome> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const req = request(url, { method, headers, agent: agent ?? false, ...(localAddress && { localAddress }) });
    let text = '';
    const end = (status: number, received: IncomingHttpHeaders, error?: string): void => {
      const ms = performance.now() - startedAt;
      resolve({ status, headers: received, body: text, error, reused: req.reusedSocket, startedAt, ms });
    };
    req.on('error', (error: NodeJS.ErrnoException) => end(0, {}, error.code ?? error.message));
    req.on('response', (res) => {
      res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      res.on('end', () => end(res.complete ? (res.statusCode ?? 0) : 0, res.headers));
      res.on('error', (error) => end(0, {}, error.message));
    });
    req.end(body);
  });
}

/** Keeps a number of connections busy, each with one request after the other, until `stop()` or until the port is closed. */
export function busy(
  connections: number,
  next: () => Shot,
): { readonly completed: number; stop(): Promise<readonly Outcome[]> } {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const outcomes: Outcome[] = [];
  let stopped = false;
  async function work(): Promise<void> {
    while (!stopped) {
      const outcome = await shoot({ agent, ...next() });
      outcomes.push(outcome);
      if (outcome.error === 'ECONNREFUSED') return;
    }
  }
  const workers = Array.from({ length: connections }, work);
  return {
    get completed() {
      return outcomes.length;
    },
    async stop() {
      stopped = true;
      await Promise.all(workers);
      agent.destroy();
      return outcomes;
    },
  };
}

/**
 * Sends `total` requests, `perSecond` of them each second without waiting for responses: a server that falls behind is not
 * spared. Times count from the moment at which a request was due.
 */
export async function paced(perSecond: number, total: number, next: () => Shot): Promise<readonly Outcome[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 200 });
  const startedMs = performance.now();
  const sent: Promise<Outcome>[] = [];
  while (sent.length < total) {
    const due = Math.min(total, Math.floor(((performance.now() - startedMs) / 1000) * perSecond) + 1);
    while (sent.length < due) sent.push(onTime(startedMs + (sent.length / perSecond) * 1000, { agent, ...next() }));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const outcomes = await Promise.all(sent);
  agent.destroy();
  return outcomes;
}

async function onTime(dueMs: number, shot: Shot): Promise<Outcome> {
  const outcome = await shoot(shot);
  return { ...outcome, ms: outcome.startedAt + outcome.ms - dueMs };
}

/** How often each status came. */
export function statuses(outcomes: readonly Pick<Outcome, 'status'>[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const { status } of outcomes) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
