import * as http from 'node:http';
import type { RequestListener } from 'node:http';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { fetchBytes, FetchError } from '../../../src/gate/net/http';
import { sendOverNode } from '../../../src/gate/net/node-http';
import gate from '../../../src/gate/package.json';
import { fetchOverNode } from '../../support/node-fetch';
import { listen } from '../../support/listen';

const TEXT = JSON.stringify({ keys: Array.from({ length: 100 }, () => 'the same text again') });

let close = (): Promise<void> => Promise.resolve();
afterEach(() => close());

async function serve(handler: RequestListener): Promise<string> {
  const server = await listen(handler);
  ({ close } = server);
  return server.url;
}

async function bodyAt(url: string, maxBytes = 1_048_576): Promise<string> {
  const { signal } = new AbortController();
  return (await fetchBytes(url, { fetch: fetchOverNode, signal, maxBytes })).toString();
}

const plain = { headers: {}, form: undefined };
const send = (url: string, more: object = {}) =>
  sendOverNode(url, { ...plain, signal: new AbortController().signal, ...more });

describe('the content of a response', () => {
  it.each<[string, Buffer]>([
    ['gzip', gzipSync(TEXT)],
    ['x-gzip', gzipSync(TEXT)],
    ['GZIP', gzipSync(TEXT)],
    ['deflate', deflateSync(TEXT)],
    ['deflate', deflateRawSync(TEXT)],
    ['br', brotliCompressSync(TEXT)],
    ['gzip, br', brotliCompressSync(gzipSync(TEXT))],
    ['deflate, gzip', gzipSync(deflateRawSync(TEXT))],
    ['identity', Buffer.from(TEXT)],
    ['', Buffer.from(TEXT)],
    ['zstd', Buffer.from(TEXT)],
  ])('is decoded: %s, and its limit counts decoded bytes', async (coding, content) => {
    const asked: unknown[] = [];
    const url = await serve((req, res) => {
      asked.push(req.headers['accept-encoding']);
      res.setHeader('content-encoding', coding).end(content);
    });
    expect(await bodyAt(url)).toBe(TEXT);
    await expect(bodyAt(url, TEXT.length - 1)).rejects.toThrow(`responded with more than ${TEXT.length - 1} bytes`);
    expect(asked).toEqual(['gzip, deflate, br', 'gzip, deflate, br']);
  });

  it.each([
    ['gzip', gzipSync(TEXT).subarray(0, 40), 'Z_BUF_ERROR'],
    ['br', brotliCompressSync(TEXT).subarray(0, 20), 'Z_BUF_ERROR'],
    ['deflate', deflateSync(TEXT).subarray(0, 20), 'Z_BUF_ERROR'],
    ['gzip', Buffer.from(TEXT), 'Z_DATA_ERROR'],
  ])('that is no whole %s fails with a code', async (coding, content, code) => {
    const url = await serve((_req, res) => void res.setHeader('content-encoding', coding).end(content));
    await expect(bodyAt(url)).rejects.toThrow(`could not be fetched (${code})`);
  });

  it('is left as it is with more than two codings, or with one that was not asked for', async () => {
    const sent = gzipSync(gzipSync(gzipSync(TEXT)));
    const url = await serve((req, res) => void res.setHeader('content-encoding', req.url!.slice(1)).end(sent));
    const { signal } = new AbortController();
    for (const codings of ['gzip,gzip,gzip', 'gzip,zstd'])
      expect(await fetchBytes(`${url}/${codings}`, { fetch: fetchOverNode, signal })).toEqual(sent);
  });
});

describe('a header of a response', () => {
  it('is found by its name in any case, several of one name joined, and none that a prototype has', async () => {
    const url = await serve((_req, res) => void res.writeHead(200, ['Age', '1', 'X-A', 'b', 'aGe', '2']).end());
    Object.defineProperty(Object.prototype, 'retry-after', { value: '9', configurable: true });
    try {
      const { header, status } = await send(url);
      expect([status, header('age'), header('x-a'), header('retry-after')]).toEqual([200, '1, 2', 'b', undefined]);
    } finally {
      Reflect.deleteProperty(Object.prototype, 'retry-after');
    }
  });
});

describe('a request', () => {
  it('is a GET, or a POST of a form', async () => {
    const asked: unknown[] = [];
    const url = await serve((req, res) => {
      let text = '';
      req.on('data', (chunk: Buffer) => (text += chunk.toString()));
      req.on('end', () => {
        asked.push([req.method, req.url, req.headers['x-a'], req.headers['content-length'], text]);
        res.end();
      });
    });
    const headers = { 'x-a': 'b' };
    await send(`${url}/doc?a=1`, { headers });
    await send(url, { headers, form: 'token=x' });
    expect(asked).toEqual([
      ['GET', '/doc?a=1', 'b', undefined, ''],
      ['POST', '/', 'b', '7', 'token=x'],
    ]);
  });

  it('has no limit of the agent, which is for connections that nobody uses', async () => {
    const timeouts: unknown[] = [];
    const url = await serve((_req, res) => {
      const { port } = new URL(url);
      const [socket] = http.globalAgent.sockets[`127.0.0.1:${port}:`] ?? [];
      timeouts.push(socket?.timeout);
      res.end('{}');
    });
    expect([await bodyAt(url), timeouts]).toEqual(['{}', [0]]);
  });

  it('ends with its signal, before and after the head', async () => {
    const closed: Promise<unknown>[] = [];
    const url = await serve((req, res) => {
      closed.push(new Promise((resolve) => res.once('close', resolve)));
      if (req.url === '/head') res.write('{');
      else abort.abort();
    });
    let abort = new AbortController();
    await expect(send(url, { signal: abort.signal })).rejects.toThrow('aborted');
    abort = new AbortController();
    const { body } = await send(`${url}/head`, { signal: abort.signal });
    abort.abort();
    const chunks = body![Symbol.asyncIterator]();
    await expect(chunks.next().then(() => chunks.next())).rejects.toThrow();
    await Promise.all(closed);
    expect(closed).toHaveLength(2);
  });

  it.each(['GET', 'POST'])(
    '%s on a kept connection that the server closes is sent again, once, if it is a GET',
    async (method) => {
      const form = method === 'POST' ? 'token=x' : undefined;
      const seen: unknown[] = [];
      const served = new Map<object, number>();
      let closesNew = false;
      const url = await serve((req, res) => {
        const { socket } = req;
        served.set(socket, (served.get(socket) ?? 0) + 1);
        seen.push([req.method, served.get(socket)]);
        if (served.get(socket) === 2 || closesNew) socket.resetAndDestroy();
        else res.end('{}');
      });
      const read = async (): Promise<string> => {
        const { body } = await send(url, { form });
        let text = '';
        for await (const chunk of body!) text += Buffer.from(chunk).toString();
        return text;
      };
      expect(await read()).toBe('{}');
      // The connection goes back to the agent in a later turn.
      while (Object.keys(http.globalAgent.freeSockets).every((name) => !name.includes(new URL(url).port)))
        await new Promise(setImmediate);
      if (form === undefined) expect(await read()).toBe('{}');
      else await expect(read()).rejects.toMatchObject({ code: 'ECONNRESET' });
      expect(seen).toEqual([[method, 1], [method, 2], ...(form === undefined ? [[method, 1]] : [])]);
      closesNew = true;
      if (form !== undefined) await expect(read()).rejects.toMatchObject({ code: 'ECONNRESET' });
      expect(seen).toHaveLength(3);
    },
  );

  it('names the code of a failure', async () => {
    const url = await serve((_req, res) => void res.end());
    await close();
    close = () => Promise.resolve();
    const failed = bodyAt(url);
    await expect(failed).rejects.toThrow(`${url} could not be fetched (ECONNREFUSED)`);
    await expect(failed).rejects.toBeInstanceOf(FetchError);
  });
});

it('names the version of the package', async () => {
  const agents: unknown[] = [];
  const url = await serve((req, res) => {
    agents.push(req.headers['user-agent']);
    res.end('{}');
  });
  const { signal } = new AbortController();
  // Over node:http or the global fetch, whichever this process uses; an injected one says what it likes.
  await fetchBytes(url, { signal });
  await fetchBytes(url, { signal, headers: { 'user-agent': 'mine' } });
  expect(agents).toEqual([`tillgate/${gate.version}`, 'mine']);
});
