import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { openSource } from './fixtures';

/** One message of PostgreSQL's protocol: type, length, body. */
function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

it('survives a server that dies while a connection opens, and says so in one packet', async () => {
  const authenticated = message('R', Buffer.alloc(4));
  const ready = message('Z', Buffer.from('I'));
  const died = message(
    'E',
    Buffer.from('SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0'),
  );
  const server = createServer((socket) => {
    socket.once('data', () => socket.end(Buffer.concat([authenticated, ready, died])));
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const opened = openSource({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` });
  await expect(opened.source.read(0)).rejects.toThrow(/^PostgreSQL: /);
  await opened.close();
  await new Promise((resolve) => server.close(resolve));
});
