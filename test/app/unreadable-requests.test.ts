import { startServer } from '../../src/app/serve';
import type { RunningServer } from '../../src/app/serve';
import { exchange } from '../hostile/support/wire';

const HEAD = 'POST / HTTP/1.1\r\nHost: api.test\r\n';

describe('requests that cannot be read', () => {
  let server: RunningServer;
  let names: readonly string[] = [];
  beforeAll(async () => {
    const listener = (req: { rawHeaders: string[] }, res: { end(text: string): void }): void => {
      names = req.rawHeaders.filter((_name, index) => index % 2 === 0);
      res.end('answered');
    };
    server = await startServer(listener, { host: '127.0.0.1', port: 0 });
  });
  afterAll(() => server.close());

  const send = async (text: string) => {
    const { answers, closed } = await exchange(server.port, Buffer.from(text, 'latin1'));
    return { statuses: answers.map(({ status }) => status), closed };
  };

  it.each([
    ['a request line that is none', 'hello\r\n\r\n', 400],
    ['a NUL in a header', `${HEAD}X: \0\r\n\r\n`, 400],
    ['a head beyond 16 kB', `${HEAD}X: ${'x'.repeat(17_000)}\r\n\r\n`, 431],
  ])('answers %s, and closes', async (_what, text, status) => {
    expect(await send(text)).toEqual({ statuses: [status], closed: true });
  });

  it('sends no second answer when a body breaks off behind the first one', async () => {
    const broken = `${HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n`;
    expect(await send(broken)).toEqual({ statuses: [200], closed: true });
  });

  it('says nothing to what comes behind the last request of a connection', async () => {
    expect(await send(`${HEAD}Connection: close\r\n\r\nhello\r\n\r\n`)).toEqual({ statuses: [200], closed: true });
  });

  it('answers an unreadable request behind a good one on the same connection', async () => {
    expect(await send(`${HEAD}\r\nhello\r\n\r\n`)).toEqual({ statuses: [200, 400], closed: true });
  });

  it('shows every header to the app, however many there are: none is dropped behind a number', async () => {
    await send(`${HEAD}${'a:b\r\n'.repeat(2_500)}Last: x\r\nConnection: close\r\n\r\n`);
    expect(names).toHaveLength(2_503);
  });
});
