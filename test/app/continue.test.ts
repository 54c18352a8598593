import { once } from 'node:events';
import { connect } from 'node:net';
import { startServer } from '../../src/app/server';
import { createLog } from '../../src/app/log';
import { appScene, issuer } from './app-scene';

/** What the server sends to `text`, and to `more` after its first bytes, until it closes the connection. */
async function exchange(text: string, more = '', env: Record<string, string> = {}): Promise<string> {
  const { app } = appScene(env);
  const where = { host: '127.0.0.1', port: 0, baseUrl: 'https://api.test', log: createLog('silent') };
  const server = await startServer(app, where);
  const socket = connect(server.port, where.host);
  let received = '';
  socket.on('error', () => undefined).on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.write(text);
  await once(socket, 'data');
  if (more !== '') socket.write(more);
  await once(socket, 'close');
  await server.close();
  return received;
}

const body = JSON.stringify({ name: 'x' });
const next = 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
const head = (authorization: string, type = 'application/json', length = body.length) =>
  `POST /v1/items HTTP/1.1\r\nHost: x\r\n${authorization}Content-Type: ${type}\r\n` +
  `Content-Length: ${length}\r\nExpect: 100-continue\r\n\r\n`;
const statusLines = (text: string) => text.match(/HTTP\/1\.1 \d+/g);

describe('Expect: 100-continue', () => {
  it.each(['application/json', 'application/x-www-form-urlencoded'])(
    'refuses an upload of %s before its body',
    async (type) => {
      const received = await exchange(head('', type, 5_000_000));
      expect(statusLines(received)).toEqual(['HTTP/1.1 401']);
      expect(received).toMatch(/\r\nConnection: close\r\n/i);
    },
  );

  it.each([
    ['with the body', body + next],
    ['in place of the body', next.repeat(3)],
  ])('sends no response to a second request %s after a refusal', async (_where, more) => {
    expect(statusLines(await exchange(head('') + more))).toEqual(['HTTP/1.1 401']);
    expect(statusLines(await exchange(head(''), more))).toEqual(['HTTP/1.1 401']);
  });

  it('refuses an upload beyond the rate limit before its body', async () => {
    const authorization = `Authorization: Bearer ${issuer.token({ scope: 'items:write' })}\r\n`;
    const first = `GET /v1/items HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`;
    const upload = head(authorization, 'application/json', 5_000_000);
    const received = await exchange(first, upload, { TILLGATE_RATE_LIMIT: '1/m' });
    expect(statusLines(received)).toEqual(['HTTP/1.1 403', 'HTTP/1.1 429']);
    const [, refused = ''] = received.split('HTTP/1.1 429 ');
    expect(refused).toMatch(/\r\nRetry-After: 60\r\n/i);
    expect(refused).toMatch(/\r\nConnection: close\r\n/i);
    expect(refused).toContain('"code":"rate_limited"');
  });

  it('asks for the body of an accepted request, and keeps the connection', async () => {
    const authorization = `Authorization: Bearer ${issuer.token({ scope: 'items:write' })}\r\n`;
    const received = await exchange(head(authorization), body + next);
    expect(statusLines(received)).toEqual(['HTTP/1.1 100', expect.stringMatching(/ (201|400)$/), 'HTTP/1.1 200']);
  });
});
