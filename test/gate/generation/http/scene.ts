import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { Request } from 'express';
import { logHandler } from '../../../../src/gate/generation/http/handler';
import { memoryGenerations } from '../../../../src/gate/generation/memory';
import type { MemoryLog } from '../../../../src/gate/generation/memory';

/** A log in memory that is served on loopback. */
export interface LogServer {
  readonly log: MemoryLog;
  readonly url: string;
  readonly requests: Request[];
  /** Ends the responses that are held. */
  endHeld(): void;
  /** Cuts every connection. */
  cut(): void;
  close(): Promise<void>;
}

export async function serveLog(
  log: MemoryLog = memoryGenerations(),
  options: Partial<Parameters<typeof logHandler>[0]> = {},
): Promise<LogServer> {
  const schedule = options.schedule ?? ((task, ms) => cancellable(setTimeout(task, ms).unref()));
  const handler = logHandler({ log, schedule, ...options });
  const requests: Request[] = [];
  const app = express().use((req, _res, next) => {
    requests.push(req);
    next();
  });
  const server = createServer(app.use('/generations', handler));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    log,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/generations`,
    requests,
    endHeld: () => handler.close(),
    cut: () => server.closeAllConnections(),
    async close() {
      await log.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function cancellable(timeout: NodeJS.Timeout): { cancel(): void } {
  return { cancel: () => clearTimeout(timeout) };
}
