import { createServer, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { feedOf } from '../../src/auth-server/generations/feed';
import type { Store } from '../../src/auth-server/storage/store';
import { httpGenerations } from '../../src/generation';
import { feedHandler } from '../../src/generation/feed/handler';
import { fakeTime, settle } from '../support/fake-time';
import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

const LINES = 'application/x-ndjson';
const ACCEPT = 'application/x-ndjson, application/json;q=0.9';

let server: TestServer;
beforeEach(async () => {
  server = await startServer();
});
afterEach(closeAll);

interface LinesResponse {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

function get(path: string, headers: Record<string, string>, method = 'GET'): Promise<LinesResponse> {
  return new Promise((resolve, reject) => {
    const call = request(server.url + path, { method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    call.on('error', reject).end();
  });
}

describe('GET /generations', () => {
  it.each([
    ['nothing', undefined, 'application/json'],
    ['whatever there is', '*/*', 'application/json'],
    ['what a browser likes', 'text/html,application/xhtml+xml,*/*;q=0.8', 'application/json'],
    ['what there is not', 'text/csv', 'application/json'],
    ['JSON first', `application/json, ${LINES};q=0.9`, 'application/json'],
    ['lines', LINES, LINES],
    ['lines first', ACCEPT, LINES],
    ['lines, but not at all', `${LINES};q=0, application/json`, 'application/json'],
  ])('asked for %s', async (_, accept, expected) => {
    const { status, headers } = await get('/generations', accept === undefined ? {} : { accept });
    expect(status).toBe(200);
    expect(headers['content-type']).toMatch(new RegExp(`^${expected}(;|$)`));
    expect(headers['vary']).toBe('Accept');
  });

  it('says in lines what it says in JSON: the time and how many, then one floor each', async () => {
    const till = await registerClient(server);
    await server.time.advance(1_000);
    const { now } = (await server.get('/generations')).body;
    const other = await registerClient(server, { client_id: 'gone' });
    await server.delete('/clients/gone');
    const lines = async (since: number) =>
      (await get(`/generations?since=${since}`, { accept: LINES })).text
        .split('\n')
        .filter((line, index, all) => line !== '' || index < all.length - 1)
        .map((line) => JSON.parse(line));
    const gone = { client_id: 'gone', generation: other.generation + 1 };
    const later = server.time.clock() + 1;
    expect(await lines(0)).toEqual([
      { now: later, count: 2 },
      { client_id: 'pos-17', generation: till.generation },
      gone,
    ]);
    expect(await lines(now)).toEqual([{ now: later, count: 1 }, gone]);
    expect(await lines(later + 1)).toEqual([{ now: later, count: 0 }]);
  });

  it('has one entity tag for both, 304 and HEAD as well', async () => {
    await registerClient(server);
    const etag = (await server.get('/generations')).headers['etag'] as string;
    const { headers } = await get('/generations', { accept: LINES });
    expect(headers['etag']).toBe(etag);
    const unchanged = await get('/generations', { accept: LINES, 'if-none-match': etag });
    expect(unchanged).toMatchObject({ status: 304, text: '', headers: { etag, vary: 'Accept' } });
    const head = await get('/generations', { accept: LINES }, 'HEAD');
    expect(head).toMatchObject({ status: 200, text: '', headers: { etag } });
  });

  it('sends more than one slice, and the http source reads them all', async () => {
    const names = Array.from({ length: 2_500 }, (_, index) => `c-${index}`);
    await Promise.all(names.map((client_id) => registerClient(server, { client_id })));
    const source = httpGenerations({ url: server.url });
    const { floors } = await source.read(0);
    expect([...floors].map(([clientId]) => clientId).sort()).toEqual(names.sort());
    await source.close?.();
  });
});

describe('a reader of a large response', () => {
  const time = fakeTime();
  const rows = Array.from({ length: 200_000 }, (_, n) => [`${'c'.repeat(100)}-${n}`, n] as const);
  const clients = new Map(rows.map(([clientId, n]) => [clientId, { clientId, generation: n, movedAt: 1 }]));
  const store = { state: { revision: 1, clients, tombstones: new Map() }, nowMs: () => 1 } as unknown as Store;
  const large = createServer(feedHandler(feedOf(store), time.schedule));
  beforeAll(() => new Promise<void>((resolve) => large.listen(0, '127.0.0.1', resolve)));
  afterAll(() => new Promise((resolve) => large.close(resolve)));

  /** Opens a response and reads nothing; resolves when the server waits. */
  async function open(): Promise<{ response: IncomingMessage; closed: Promise<void> }> {
    const { port } = large.address() as AddressInfo;
    const response = await new Promise<IncomingMessage>((resolve) =>
      request({ port, host: '127.0.0.1', headers: { accept: LINES } }, resolve).end(),
    );
    const closed = new Promise<void>((resolve) => response.on('close', resolve).on('error', () => undefined));
    while (time.pending === 0) await settle();
    return { response, closed };
  }

  it('is dropped when it takes nothing for 15 s', async () => {
    const { response, closed } = await open();
    await time.advance(15_000);
    response.resume();
    await closed;
    expect(response.complete).toBe(false);
    expect(time.pending).toBe(0);
  });

  it('leaves no timer when it goes', async () => {
    const { response } = await open();
    response.destroy();
    while (time.pending > 0) await settle();
  });

  it('gets all of it when it takes its time', async () => {
    const { response } = await open();
    let lines = 0;
    for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>)
      lines += chunk.split('\n').length - 1;
    expect(lines).toBe(1 + rows.length);
  });
});
