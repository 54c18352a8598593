import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { parseResponse } from '../../gate/hostile/support/wire';
import type { WireResponse } from '../../gate/hostile/support/wire';

/** A client that sends bytes as they are, one request after the other on one connection while the server keeps it. */
export interface RawClient {
  /**
   * Sends a request and reads its response; `undefined` when the server closed the connection without one.
   *
   * @throws Error when the response is malformed, or does not come within the limit.
   */
  send(bytes: string): Promise<WireResponse | undefined>;
  close(): void;
}

/** A later response counts as a hang. */
const LIMIT_MS = 30_000;

export function rawClient(port: number): RawClient {
  let socket: Socket | undefined;

  function open(): Socket {
    const fresh = connect(port, '127.0.0.1').setEncoding('latin1').setNoDelay();
    // Reported to a pending request only: a connection may close between two requests.
    fresh.on('error', () => undefined);
    return fresh;
  }

  function exchange(connection: Socket, bytes: string): Promise<WireResponse | undefined> {
    return new Promise((resolve, reject) => {
      let received = '';
      const timer = setTimeout(() => finish(() => reject(new Error(`no response within ${LIMIT_MS} ms`))), LIMIT_MS);

      function finish(settle: () => void): void {
        clearTimeout(timer);
        connection.removeAllListeners('data').removeAllListeners('close');
        settle();
      }
      function closed(): void {
        socket = undefined;
        finish(() => (received === '' ? resolve(undefined) : settleWith(received)));
      }
      function settleWith(text: string): void {
        try {
          resolve(parseResponse(text).response);
        } catch (error) {
          reject(new Error(`malformed: ${text.slice(0, 200)}`, { cause: error }));
        }
      }
      connection.on('data', (chunk) => {
        received += String(chunk);
        if (isComplete(received)) finish(() => settleWith(received));
      });
      connection.on('close', closed);
      connection.write(bytes, 'latin1');
    });
  }

  return {
    async send(bytes) {
      if (!socket || socket.destroyed || !socket.writable || socket.readableEnded) socket = open();
      const used = socket;
      const response = await exchange(used, bytes);
      // Line breaks in the input may have made more than one request of it: what else comes back is not waited for.
      if (response?.headers.get('connection')?.[0] === 'close' || mayBeSeveral(bytes)) used.destroy();
      if (used.destroyed) socket = undefined;
      return response;
    },
    close: () => void socket?.destroy(),
  };
}

function isComplete(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1];
  return length !== undefined ? text.length >= end + 4 + Number(length) : text.endsWith('0\r\n\r\n');
}

/** Whether there is a line end beyond those of one plain request head, or bytes after it. */
function mayBeSeveral(bytes: string): boolean {
  const head = bytes.split('\r\n\r\n', 1)[0] ?? '';
  return /\r(?!\n)|(?<!\r)\n/.test(head) || bytes.indexOf('\r\n\r\n') !== bytes.lastIndexOf('\r\n\r\n');
}
