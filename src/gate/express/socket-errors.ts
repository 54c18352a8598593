import type { EventEmitter } from 'node:events';
import type { GateRequest } from './request-state';

/** What is used of the socket of a request; a fake request has none. */
type Emitter = Pick<EventEmitter, 'on' | 'off'>;

/** Number of undecided requests by their socket: pipelined ones share it, and one listener is enough for all. */
const undecided = new WeakMap<Emitter, number>();
const ignore = (): void => undefined;

/**
 * Runs `decide` with a listener for errors of the socket: Node takes its own off before the event `upgrade`, and a client that
 * resets the connection would end the process. The listener is off when the result settles, so that none is left on a connection
 * that is kept alive: the caller adds its own before it awaits anything else.
 */
export async function ignoringSocketErrors<Value>(req: GateRequest, decide: () => Promise<Value>): Promise<Value> {
  const socket = socketOf(req);
  if (!socket) return decide();
  const others = undecided.get(socket) ?? 0;
  undecided.set(socket, others + 1);
  if (others === 0) socket.on('error', ignore);
  try {
    return await decide();
  } finally {
    const left = (undecided.get(socket) as number) - 1;
    undecided.set(socket, left);
    if (left === 0) socket.off('error', ignore);
  }
}

/** The socket that nothing else may listen to. A request of HTTP/2 shares its own with others, and Node listens to that. */
function socketOf({ httpVersionMajor, socket }: GateRequest): Emitter | undefined {
  const isEmitter = typeof socket?.on === 'function' && typeof socket.off === 'function';
  return isEmitter && httpVersionMajor !== 2 ? socket : undefined;
}
