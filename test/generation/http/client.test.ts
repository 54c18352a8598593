import { generationsFromUrl } from '../../../src/generation/from-url';
import { httpGenerations } from '../../../src/generation/http/source';
import type { HttpGenerationsOptions } from '../../../src/generation/http/source';
import type { Fetch } from '../../../src/token/keys/fetch-json';
import { fakeTime } from '../../support/fake-time';
import { START } from '../fixtures';

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
}

/** A source over a fetch that is scripted, response by response. */
function open(
  responses: readonly (() => Response | Promise<Response>)[],
  options: Partial<HttpGenerationsOptions> = {},
) {
  const time = fakeTime(START);
  const sent: Sent[] = [];
  const fetch: Fetch = async (url, init) => {
    sent.push({ url, init });
    const respond = responses[sent.length - 1];
    if (!respond) throw new Error('no further response');
    return respond();
  };
  const logger = { info() {}, warn() {}, error() {} };
  const { schedule } = time;
  const source = httpGenerations({ url: 'https://login.test', fetch, schedule, logger, ...options });
  return { source, sent, time };
}

const floors = (): Response => Response.json({ now: START, floors: [] });
const failing = (code: string) => () =>
  Promise.reject<Response>(new TypeError('fetch failed', { cause: Object.assign(new Error('secret'), { code }) }));

describe('a request to a token server', () => {
  it.each(['https://login.test/a/generations', 'https://login.test/a/generations/'])(
    'goes below the path of %s, also for the stream',
    async (url) => {
      const stream = (): Response => new Response('', { headers: { 'content-type': 'text/event-stream' } });
      const { source, sent } = open([floors, stream], { url });
      await source.read(0);
      (await source.watch!(() => undefined))();
      expect(sent.map((request) => request.url)).toEqual([`${url}?since=0`, 'https://login.test/a/generations/stream']);
    },
  );

  it.each([
    ['https://pos@login.test', 'pos:'],
    ['https://:hunter2@login.test', ':hunter2'],
    ['https://login.test', undefined],
  ])('to %s carries the credentials %j', async (url, credentials) => {
    const { source, sent } = open([floors], { url });
    await source.read(0);
    const { authorization } = sent[0]!.init.headers as Record<string, string>;
    expect(authorization).toBe(credentials && `Basic ${Buffer.from(credentials).toString('base64')}`);
  });

  it.each(['ECONNRESET', 'UND_ERR_SOCKET'])('is sent once more after %s: the connection was idle', async (code) => {
    const { source, sent } = open([failing(code), floors]);
    expect(await source.read(0)).toMatchObject({ nowMs: START });
    expect(sent[1]).toEqual(sent[0]);
  });

  it('is not sent a third time', async () => {
    const { source, sent } = open([failing('ECONNRESET'), failing('ECONNRESET'), floors]);
    await expect(source.read(0)).rejects.toThrow('GET https://login.test/generations: TypeError (ECONNRESET)');
    expect(sent).toHaveLength(2);
  });

  it('is not sent again after another failure, whose cause is kept', async () => {
    const { source, sent } = open([failing('ECONNREFUSED'), floors]);
    const error: unknown = await source.read(0).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      message: 'GET https://login.test/generations: TypeError (ECONNREFUSED)',
      cause: { message: 'fetch failed' },
    });
    expect(sent).toHaveLength(1);
  });

  it('is not sent again when its time is over', async () => {
    let cut: (error: Error) => void = () => undefined;
    const { source, sent, time } = open([() => new Promise((_, reject) => (cut = reject)), floors], { timeoutMs: 700 });
    const reading = expect(source.read(0)).rejects.toThrow('no response within 700 ms');
    await time.advance(700);
    cut(new TypeError('aborted', { cause: { code: 'ECONNRESET' } }));
    await reading;
    expect(sent).toHaveLength(1);
  });

  it.each([
    [300, 'responded with 300; redirects are refused, configure the final URL'],
    [399, 'responded with 399; redirects are refused, configure the final URL'],
    [400, 'responded with 400, expected 200'],
  ])('that gets %i fails', async (status, message) => {
    const { source } = open([() => new Response(null, { status })]);
    await expect(source.read(0)).rejects.toThrow(message);
  });

  it('that gets no content type fails', async () => {
    const { source } = open([() => new Response(Buffer.from('{}'))]);
    await expect(source.read(0)).rejects.toThrow('responded with another content type than application/x-ndjson or');
  });

  it('names no entity tag where the last response had none', async () => {
    const { source, sent } = open([floors, floors]);
    await source.read(5);
    await source.read(5);
    expect(sent[1]!.init.headers).not.toHaveProperty('if-none-match');
  });

  it('drops what it does not read of a response', async () => {
    let isDropped = false;
    const body = new ReadableStream({ cancel: () => void (isDropped = true) });
    const { source, sent } = open([() => new Response(body, { status: 500 })]);
    await expect(source.read(0)).rejects.toThrow('responded with 500');
    expect(sent[0]!.init.signal?.aborted).toBe(true);
    expect(isDropped).toBe(false);
  });

  it.each(['xtext/event-stream', 'text/event-streamx', 'text/event-stream-json'])(
    'for the stream that gets %s fails',
    async (type) => {
      const { source } = open([() => new Response('', { headers: { 'content-type': type } })]);
      await expect(source.watch!(() => undefined)).rejects.toThrow('another content type than text/event-stream');
    },
  );

  it.each(['text/event-stream', 'Text/Event-Stream ; charset=utf-8'])('for the stream accepts %s', async (type) => {
    const { source, time } = open([() => new Response('', { headers: { 'content-type': type } })]);
    const stop = await source.watch!(() => undefined);
    // Nobody has asked to be told of its end.
    await time.advance(1_000);
    stop();
  });
});

describe('options of httpGenerations()', () => {
  it.each<[unknown, string]>([
    [undefined, 'expected an options object, got undefined'],
    [{ url: 'https://a.test', headers: null }, 'option "headers" must be an object of strings, got null'],
    [{ url: 'https://a.test', headers: 'a' }, 'option "headers" must be an object of strings, got "a"'],
    [{ url: 'https://a.test', clock: 7 }, 'option "clock" must be a function, got 7'],
    [{ url: 'https://a.test', schedule: 7 }, 'option "schedule" must be a function, got 7'],
    ...['x-https://a.test', 'httpsx://a.test'].map((url): [unknown, string] => [
      { url },
      'option "url" must be an absolute http: or https: URL without a fragment',
    ]),
  ])('%j are refused', (options, message) => {
    expect(() => httpGenerations(options as HttpGenerationsOptions)).toThrow(
      new TypeError(`httpGenerations(): ${message}`),
    );
  });

  it('a URL whose scheme does not begin it has none', () => {
    expect(() => generationsFromUrl('1mysql:x')).toThrow('got a URL without a scheme');
  });
});
