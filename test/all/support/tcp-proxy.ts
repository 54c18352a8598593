import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Transform } from 'node:stream';

/** A wire between a client and a server that a test can cut, freeze or lay to another server. */
export interface TcpProxy {
  readonly port: number;
  /** Connections that have been taken so far. */
  readonly connections: number;
  /** From now on nothing passes, without an error: what a firewall does that has forgotten its connections. */
  freeze(): void;
  /** Later connections pass again; the frozen ones stay dead. */
  thaw(): void;
  /** Ends every open connection; later ones pass. */
  cut(): void;
  /** From now on each connection is late by its own number of milliseconds: what two of them carry changes its order. */
  delay(pickMs: () => number): void;
  /** Lays the wire to another port and cuts what stands: a failover. */
  switchTo(port: number): void;
  close(): Promise<void>;
}

/** Opens a wire to a port of this machine. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const open = new Set<Socket>();
  const dead = new WeakSet<Socket>();
  let target = targetPort;
  let frozen = false;
  let connections = 0;
  let pickMs = (): number => 0;
  const latencies = new Set<{ ms: number }>();

  /** Passes on each chunk after the latency of its connection. */
  function late(latency: { readonly ms: number }): Transform {
    return new Transform({
      transform(chunk, _encoding, done) {
        if (latency.ms <= 0) done(null, chunk);
        else setTimeout(() => done(null, chunk), latency.ms);
      },
    });
  }

  const server = createServer((near) => {
    connections++;
    const far = connect(target, '127.0.0.1');
    const latency = { ms: pickMs() };
    latencies.add(latency);
    near.on('close', () => latencies.delete(latency));
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        if (!dead.has(other)) other.destroy();
      });
    }
    if (frozen) return freeze();
    near.pipe(late(latency)).pipe(far);
    far.pipe(late(latency)).pipe(near);
  });

  function freeze(): void {
    frozen = true;
    for (const socket of open) {
      socket.unpipe();
      socket.pause();
      dead.add(socket);
    }
  }

  function cut(): void {
    for (const socket of open) socket.destroy();
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    freeze,
    thaw: () => void (frozen = false),
    cut,
    delay(pick) {
      pickMs = pick;
      for (const latency of latencies) latency.ms = pick();
    },
    switchTo(port) {
      target = port;
      cut();
    },
    close() {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Keeps a server from responding until the returned function is called; connections from before stay half open. */
export function stalled(wire: Pick<TcpProxy, 'freeze' | 'thaw'>): Promise<() => Promise<void>> {
  wire.freeze();
  return Promise.resolve(() => Promise.resolve(wire.thaw()));
}
