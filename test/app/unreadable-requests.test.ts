import type { RequestListener } from 'node:http';
import { createLog } from '../../src/app';
import { logUnreadable } from '../../src/app/log';
import { startServer } from '../../src/app/serve';
import type { RunningServer, UnreadableRequest } from '../../src/app/serve';
import { exchange } from '../hostile/support/wire';

const HEAD = 'POST / HTTP/1.1\r\nHost: api.test\r\n';

describe('requests that cannot be read', () => {
  let server: RunningServer;
  let names: readonly string[] = [];
  const reported: UnreadableRequest[] = [];
  const statusesOf: number[] = [];
  const listener: RequestListener = (req, res) => {
    names = req.rawHeaders.filter((_name, index) => index % 2 === 0);
    res.once('close', () => statusesOf.push(res.statusCode));
    if (req.url === '/reading') req.resume().once('end', () => res.end('read'));
    else res.end('done');
  };
  beforeAll(async () => {
    const onUnreadable = (request: UnreadableRequest): void => void reported.push(request);
    const problemTypes = 'https://api.test/problems/';
    server = await startServer(listener, { host: '127.0.0.1', port: 0, problemTypes, onUnreadable });
  });
  afterAll(() => server.close());
  beforeEach(() => void (reported.length = statusesOf.length = 0));

  const send = async (text: string) => {
    const { responses, closed } = await exchange(server.port, Buffer.from(text, 'latin1'));
    return { statuses: responses.map(({ status }) => status), closed };
  };

  it.each([
    ['not a request line', 'hello\r\n\r\n', 400, 'invalid_request', 'HPE_INVALID_METHOD'],
    ['a NUL in a header', `${HEAD}X: \0\r\n\r\n`, 400, 'invalid_request', 'HPE_INVALID_HEADER_TOKEN'],
    [
      'a head beyond 16 kB',
      `${HEAD}X: ${'x'.repeat(17_000)}\r\n\r\n`,
      431,
      'request_header_fields_too_large',
      'HPE_HEADER_OVERFLOW',
    ],
  ])('refuses %s with a problem body, closes, and reports only the code', async (_what, text, status, code, why) => {
    const { responses, malformed, closed } = await exchange(server.port, Buffer.from(text, 'latin1'));
    expect({ malformed, closed, statuses: responses.map((response) => response.status) }).toEqual({
      closed: true,
      statuses: [status],
    });
    const { headers, body } = responses[0]!;
    expect(headers.get('content-type')).toEqual(['application/problem+json; charset=utf-8']);
    expect(headers.get('cache-control')).toEqual(['no-store']);
    expect(headers.get('connection')).toEqual(['close']);
    expect(JSON.parse(body)).toEqual({
      type: `https://api.test/problems/${code}`,
      title: { 400: 'Bad Request', 431: 'Request Header Fields Too Large' }[status],
      status,
      detail: expect.any(String),
      code,
    });
    expect(reported).toEqual([{ status, code: why }]);
  });

  it('leaves one line in the log', () => {
    const lines: string[] = [];
    const logger = createLog({ destination: { write: (line) => void lines.push(line) } });
    logUnreadable(logger, { status: 431, code: 'HPE_HEADER_OVERFLOW' });
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {
        level: 'info',
        time: expect.any(String),
        status: 431,
        reason: 'unreadable',
        detail: 'HPE_HEADER_OVERFLOW',
        msg: 'request',
      },
    ]);
  });

  it('sends no second response when a body is invalid after the first one', async () => {
    const broken = `${HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n`;
    expect(await send(broken)).toEqual({ statuses: [200], closed: true });
    expect(reported).toEqual([]);
  });

  it('does not report an invalid body that a handler is reading: its response has the status', async () => {
    const broken = `${HEAD.replace('/', '/reading')}Transfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n`;
    expect(await send(broken)).toEqual({ statuses: [400], closed: true });
    expect([reported, statusesOf]).toEqual([[], [400]]);
  });

  it('ignores bytes after the last request of a connection', async () => {
    expect(await send(`${HEAD}Connection: close\r\n\r\nhello\r\n\r\n`)).toEqual({ statuses: [200], closed: true });
    expect(reported).toEqual([]);
  });

  it('refuses an unreadable request after a good one on the same connection', async () => {
    expect(await send(`${HEAD}\r\nhello\r\n\r\n`)).toEqual({ statuses: [200, 400], closed: true });
    expect(reported).toEqual([{ status: 400, code: 'HPE_INVALID_METHOD' }]);
  });

  it('passes every header to the app, however many there are', async () => {
    await send(`${HEAD}${'a:b\r\n'.repeat(2_500)}Last: x\r\nConnection: close\r\n\r\n`);
    expect(names).toHaveLength(2_503);
  });
});
