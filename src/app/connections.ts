import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import { isWaiting } from './continue';

/** How long new requests are still accepted after SIGTERM: some were sent before the load balancer noticed. */
const GRACE_MS = 100;
/** How often that is repeated at most while new connections keep coming. */
const MAX_GRACES = 10;
/** Turns of the event loop after each grace, at most, until one in which nothing arrives. */
const MAX_TURNS = 2_000;

/** The open connections of a server, and the latest response on each. */
export class Connections {
  readonly #sockets = new Set<Socket>();
  readonly #responses = new Map<Duplex, ServerResponse>();
  #isDraining = false;
  /** Since the last grace. */
  #hasNewConnection = false;
  /** Of a connection or a request, since the last turn. */
  #hasArrival = false;

  get isDraining(): boolean {
    return this.#isDraining;
  }

  latestOf(socket: Duplex): ServerResponse | undefined {
    return this.#responses.get(socket);
  }

  add(socket: Socket): void {
    this.#hasNewConnection = true;
    this.#hasArrival = true;
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket) && this.#responses.delete(socket));
  }

  /** Whether a request counts. */
  accepts({ socket }: IncomingMessage, res: ServerResponse): boolean {
    this.#hasArrival = true;
    const earlier = this.#responses.get(socket);
    // Refused before its body: the connection closes, and no further request on it counts (RFC 9112 section 9.6).
    if (isWaiting(earlier) && earlier?.headersSent) return false;
    this.#responses.set(socket, res);
    if (this.#isDraining) res.setHeader('Connection', 'close');
    return true;
  }

  /** Stops the server; resolves when the last connection is closed. What is still open after the deadline is cut. */
  async drain(server: Server, deadlineMs: number): Promise<void> {
    const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
    this.#isDraining = true;
    for (const res of this.#responses.values()) {
      if (!res.headersSent) res.setHeader('Connection', 'close');
      // A response whose head was sent earlier keeps its connection alive: it is idle when the response ends.
      else res.once('close', () => setImmediate(() => this.#sparingBusy(() => server.closeIdleConnections())));
    }
    await this.#awaitArrivals(Math.min(GRACE_MS, deadlineMs));
    const closed = new Promise<void>((resolve) => this.#sparingBusy(() => server.close(() => resolve())));
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy();
    await closed;
    clearTimeout(deadline);
  }

  async #awaitArrivals(graceMs: number): Promise<void> {
    for (let graces = 0; graces === 0 || (this.#hasNewConnection && graces < MAX_GRACES); graces++) {
      this.#hasNewConnection = false;
      if (this.#sockets.size > 0) await pause(graceMs);
      // Timers run before sockets are read: on a busy machine, connections still wait in the operating system, and closing
      // would reset them, with requests that a proxy cannot repeat.
      for (let turns = 0; turns < 2 || (this.#hasArrival && turns < MAX_TURNS); turns++) {
        this.#hasArrival = false;
        await turn();
      }
    }
  }

  /**
   * Runs `closeIdle`. Node counts a connection as idle as soon as `res.end()` was called, and would destroy it with the
   * part of the response that a slow client has not taken yet, or with a further request that is being handled.
   */
  #sparingBusy(closeIdle: () => void): void {
    const busy = [...this.#sockets].filter((socket) => this.#responses.get(socket)?.writableFinished === false);
    for (const socket of busy) socket.destroy = () => socket;
    closeIdle();
    for (const socket of busy) delete (socket as Partial<Socket>).destroy;
  }
}
