import { FetchError, fetchObject } from '../../../src/gate/net/http';
import type { Fetch } from '../../../src/gate/net/http';

const URL_ = 'https://login.test/doc?key=secret';
const respondWith =
  (body: string | null, status = 200): Fetch =>
  () =>
    Promise.resolve(new Response(body, { status }));

async function failureOf(work: Promise<unknown>): Promise<FetchError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FetchError);
  return error as FetchError;
}

function get(fetch: Fetch, signal = new AbortController().signal): Promise<unknown> {
  return fetchObject(URL_, { fetch, signal, maxBytes: 20 });
}

describe('fetchObject()', () => {
  it('asks for JSON, follows no redirect, and returns the object', async () => {
    const asked: unknown[] = [];
    const { signal } = new AbortController();
    const fetch: Fetch = (...args) => {
      asked.push(args);
      return Promise.resolve(new Response('{"a":1}'));
    };
    expect(await get(fetch, signal)).toEqual({ a: 1 });
    expect(asked).toEqual([[URL_, { redirect: 'manual', signal, headers: { accept: 'application/json' } }]]);
  });

  it('passes options that inherit nothing, as fetch reads more than it is given', async () => {
    const prototypes: unknown[] = [];
    const fetch: Fetch = (_url, init) => {
      prototypes.push(Object.getPrototypeOf(init));
      return Promise.resolve(new Response('{"a":1}'));
    };
    await get(fetch);
    const { signal } = new AbortController();
    await fetchObject(URL_, { fetch, signal, maxBytes: 20, form: new URLSearchParams({ token: 'x' }) });
    expect(prototypes).toEqual([null, null]);
  });

  it('names the status of a response without a body', async () => {
    expect((await failureOf(get(respondWith(null, 404)))).message).toBe('https://login.test/doc responded with 404');
  });

  it.each([404, 500, 201])('names status %i and keeps it', async (status) => {
    const { message, status: kept, name } = await failureOf(get(respondWith('{}', status)));
    expect([message, kept, name]).toEqual([`https://login.test/doc responded with ${status}`, status, 'FetchError']);
  });

  it('says that redirects are refused', async () => {
    const { message, status } = await failureOf(get(respondWith('{}', 302)));
    const advice = 'redirects are refused, configure the final URL';
    expect([message, status]).toEqual([`https://login.test/doc responded with 302; ${advice}`, 302]);
  });

  it('sends a GET again, once, whose idle connection the server has just closed', async () => {
    const closed = Object.assign(new TypeError('fetch failed'), { cause: { code: 'UND_ERR_SOCKET' } });
    let sent = 0;
    const fetch: Fetch = () => (++sent % 2 === 1 ? Promise.reject(closed) : Promise.resolve(new Response('{"a":1}')));
    expect([await get(fetch), sent]).toEqual([{ a: 1 }, 2]);
    const { message } = await failureOf(get(() => (sent++, Promise.reject(closed))));
    expect([message, sent]).toEqual(['https://login.test/doc could not be fetched (UND_ERR_SOCKET)', 4]);
    const form = new URLSearchParams({ token: 'x' });
    const { signal } = new AbortController();
    await failureOf(fetchObject(URL_, { fetch: () => (sent++, Promise.reject(closed)), signal, maxBytes: 20, form }));
    expect(sent).toBe(5);
  });

  it.each([
    ['{"a":"123456789012"}', undefined],
    ['{"a":"1234567890123"}', 'responded with more than 20 bytes'],
    ['[]', 'did not respond with a JSON object'],
    ['null', 'did not respond with a JSON object'],
    ['{', 'did not respond with a JSON object'],
    ['', 'did not respond with a JSON object'],
    [null, 'did not respond with a JSON object'],
  ])('of a body %j: %s', async (body, complaint) => {
    if (complaint === undefined) return expect(await get(respondWith(body))).toEqual(JSON.parse(body ?? ''));
    const { message, status } = await failureOf(get(respondWith(body)));
    expect([message, status]).toEqual([`https://login.test/doc ${complaint}`, 200]);
  });

  it.each([
    [Object.assign(new TypeError('fetch failed: secret'), { cause: { code: 'ECONNREFUSED' } }), ' (ECONNREFUSED)'],
    [new TypeError('secret'), ''],
    [Object.assign(new Error('secret'), { cause: { code: 7 } }), ''],
    [new Error('secret', { cause: 'text' }), ''],
    [undefined, ''],
  ])('names the code of a failure and keeps its cause (%#)', async (cause, code) => {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- an injected fetch may reject with anything
    const error = await failureOf(get(() => Promise.reject<Response>(cause)));
    expect(error.message).toBe(`https://login.test/doc could not be fetched${code}`);
    expect([error.status, error.cause, 'cause' in error]).toEqual([undefined, cause, true]);
  });

  it.each([
    ['took longer than 5 s', 'took longer than 5 s'],
    [undefined, 'did not respond in time'],
  ])('ends with the signal, also where fetch ignores it: %s', async (reason, complaint) => {
    const abort = new AbortController();
    const never = failureOf(get(() => new Promise(() => undefined), abort.signal));
    abort.abort(reason);
    expect((await never).message).toBe(`https://login.test/doc ${complaint}`);
    let called = false;
    const fetch: Fetch = () => ((called = true), Promise.resolve(new Response('{}')));
    expect((await failureOf(get(fetch, abort.signal))).message).toBe(`https://login.test/doc ${complaint}`);
    expect(called).toBe(false);
  });
});
