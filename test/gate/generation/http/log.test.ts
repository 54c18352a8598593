import { httpGenerations } from '../../../../src/gate/generation/http/log';
import type { HttpGenerationsOptions } from '../../../../src/gate/generation/http/log';
import type { GenerationSource, LogReader } from '../../../../src/gate/generation/log';
import { SourceError } from '../../../../src/gate/generation/log';
import type { Fetch } from '../../../../src/gate/net/http';
import { fakeTime, settle } from '../../../support/fake-time';
import type { FakeTime } from '../../../support/fake-time';
import { START } from '../fixtures';

interface Sent {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

interface Scripted {
  readonly reader: LogReader;
  readonly source: GenerationSource;
  readonly sent: Sent[];
  readonly time: FakeTime;
}

type Respond = (signal?: AbortSignal) => Response | Promise<Response>;

/** A reader over a fetch that is scripted, response by response. */
function open(pages: readonly Respond[], options: Partial<HttpGenerationsOptions> = {}): Scripted {
  const time = fakeTime(START);
  const sent: Sent[] = [];
  let next = 0;
  const fetch: Fetch = async (url, { headers, signal }) => {
    sent.push({ url, headers: headers as Sent['headers'], signal: signal as AbortSignal });
    const respond = pages[next++];
    if (!respond) throw new Error('no further response');
    return respond(signal as AbortSignal);
  };
  const source = httpGenerations({ url: 'https://login.test', fetch, schedule: time.schedule, ...options });
  return { reader: source.reader(), source, sent, time };
}

const MARK = { epoch: 'e', unit: 7, complete_ms: START, kept_ms: 90_000_000 };
const CHANGE = { client_id: 'pos', generation: START };
const page = (members: object = {}): Respond => {
  return () => Response.json({ position: 'p-1', end: true, mark: MARK, changes: [], ...members });
};
const failing = (code: string): Respond => {
  return () => Promise.reject(new TypeError('secret', { cause: Object.assign(new Error('secret'), { code }) }));
};

const status = (code: number): Respond => {
  return () => new Response(null, { status: code });
};
const LATER_FORMAT =
  'the log is in a later format, which this version of Tillgate cannot read: update this process (UPGRADE.md)';

async function failureOf(reader: LogReader, waitMs = 0): Promise<string> {
  const error: unknown = await reader.next(waitMs).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(SourceError);
  return (error as Error).message;
}

describe('a request to a token server', () => {
  it('asks for what follows the position of the last response', async () => {
    const { reader, sent } = open([page({ position: 'a', end: false, changes: [CHANGE] }), page()]);
    expect(await reader.next(0)).toMatchObject({ changes: [['pos', START]], end: false });
    expect(await reader.next(0)).toMatchObject({
      changes: [],
      end: true,
      mark: { epoch: 'e', unit: 7, completeMs: START, keptMs: 90_000_000 },
    });
    expect(sent.map(({ url }) => url)).toEqual([
      'https://login.test/generations',
      'https://login.test/generations?after=a',
    ]);
  });

  it('asks again for what a failed response had', async () => {
    const { reader, sent } = open([page({ position: 'a' }), status(503), page()]);
    await reader.next(0);
    expect(await failureOf(reader)).toBe('https://login.test/generations responded with 503');
    await reader.next(0);
    expect(new URL(sent[2]!.url).searchParams.get('after')).toBe('a');
  });

  it('has credentials of the URL as Basic, and shows them nowhere', async () => {
    const url = 'https://pos%3A1:hunter2%C3%A4@login.example/a/?key=hunter3';
    const { reader, sent } = open([failing('ECONNREFUSED')], { url });
    expect(await failureOf(reader)).toBe('https://login.example/a/ could not be fetched (ECONNREFUSED)');
    expect(sent[0]).toMatchObject({
      url: 'https://login.example/a/?key=hunter3',
      headers: { authorization: `Basic ${Buffer.from('pos:1:hunter2ä').toString('base64')}` },
    });
  });

  it('has the headers that it was given', async () => {
    const { reader, sent } = open([page()], { headers: { Authorization: 'Bearer abc', 'X-A': '1' } });
    await reader.next(0);
    expect(sent[0]!.headers).toMatchObject({ authorization: 'Bearer abc', 'x-a': '1', accept: 'application/json' });
  });

  it.each(['ECONNRESET', 'UND_ERR_SOCKET'])('is sent once more after %s: the connection was idle', async (code) => {
    const { reader, sent } = open([failing(code), page(), failing(code), failing(code), page()]);
    expect((await reader.next(0)).end).toBe(true);
    expect(sent).toHaveLength(2);
    expect(await failureOf(reader)).toBe(`https://login.test/generations could not be fetched (${code})`);
    expect(sent).toHaveLength(4);
  });

  it('ends with its time, and is not sent again then', async () => {
    let cut: (error: Error) => void = () => undefined;
    const { reader, sent, time } = open([() => new Promise((_, reject) => (cut = reject)), page()], { timeoutMs: 700 });
    const failed = failureOf(reader);
    await time.advance(700);
    cut(new TypeError('aborted', { cause: { code: 'ECONNRESET' } }));
    expect(await failed).toBe('https://login.test/generations did not respond within 700 ms');
    expect(sent).toHaveLength(1);
  });

  const json = (body: string): Respond => {
    return () => new Response(body, { headers: { 'content-type': 'application/json' } });
  };
  const NO_JSON = 'responded with another content type than application/json';
  it.each<[string, Respond, string]>([
    ['a redirect', status(302), 'responded with 302; redirects are refused, configure the final URL'],
    ['an error', status(400), 'responded with 400'],
    ['no content type', () => new Response(Buffer.from('{}')), NO_JSON],
    ['another content type', () => new Response('{}', { headers: { 'content-type': 'text/html' } }), NO_JSON],
    ['a body that never ends', json('x'.repeat(8_388_609)), 'responded with more than 8388608 bytes'],
    ['no JSON', json('{"position'), 'responded with invalid JSON'],
    ...['', 'a b', 'x'.repeat(257), 7, undefined].map((position): [string, Respond, string] => [
      `the position ${JSON.stringify(position)}`,
      page({ position }),
      'responded without a "position" of 1 to 256 printable characters',
    ]),
    ['no end', page({ end: undefined }), 'responded without "end": true or false'],
    ['no changes', page({ changes: {} }), 'responded without an array "changes"'],
    ['neither changes nor the end', page({ end: false }), 'responded with neither changes nor the end'],
    ...[null, 'pos', { client_id: '', generation: 1 }, { client_id: 'pos', generation: '1' }, { generation: 1 }].map(
      (entry): [string, Respond, string] => [
        `the entry ${JSON.stringify(entry)}`,
        page({ changes: [CHANGE, entry] }),
        'responded with an entry that is not a change (changes[1])',
      ],
    ),
    ...[null, {}, { ...MARK, unit: '7' }, { ...MARK, epoch: 7 }, { ...MARK, complete_ms: -1 }].map(
      (mark): [string, Respond, string] => [
        `the mark ${JSON.stringify(mark)}`,
        page({ mark }),
        'responded with a "mark" that is not valid',
      ],
    ),
    ['a mark of a later format', page({ mark: { ...MARK, format: 2 } }), LATER_FORMAT],
  ])('that gets %s fails, and the position stays', async (_what, respond, message) => {
    const { reader, sent } = open([respond, page()]);
    expect(await failureOf(reader)).toBe(`https://login.test/generations ${message}`);
    expect(sent[0]!.signal.aborted).toBe(true);
    await reader.next(0);
    expect(sent[1]!.url).toBe('https://login.test/generations');
  });

  it('needs no mark: a server may serve a log that has none', async () => {
    const { reader } = open([page({ mark: undefined })]);
    expect((await reader.next(0)).mark).toBeUndefined();
  });
});

describe('a wait', () => {
  it.each([
    [5_000, '?wait=5000'],
    [249.5, '?wait=250'],
    [60_000, '?wait=30000'],
    [0, ''],
  ])('of %d ms is left to the server', async (waitMs, query) => {
    const { reader, sent, time } = open([page({ changes: [CHANGE] })]);
    expect((await reader.next(waitMs)).changes).toEqual([['pos', START]]);
    expect(sent[0]!.url).toBe(`https://login.test/generations${query}`);
    expect(time.pending).toBe(0);
  });

  it('has a deadline 5 s after its end', async () => {
    const { reader, time } = open([() => new Promise(() => {})]);
    let failure = '';
    void reader.next(5_000).catch((error: unknown) => (failure = String(error)));
    await time.advance(9_999);
    expect(failure).toBe('');
    await time.advance(1);
    expect(failure).toBe('SourceError: https://login.test/generations did not respond within 10000 ms');
  });

  it.each<[string, Respond]>([
    ['without changes', page()],
    ['with its last change again', page({ changes: [CHANGE] })],
  ])('of a server that responds immediately, %s, takes 250 ms all the same', async (_what, again) => {
    const { reader, sent, time } = open([page(), ...Array<Respond>(9).fill(again)]);
    const follow = async (): Promise<void> => {
      for (;;) await reader.next(5_000);
    };
    follow().catch(() => undefined);
    await time.advance(1_000);
    expect(sent).toHaveLength(5);
    reader.close();
  });

  it('of a server that has more, or has moved on, takes no longer than the response', async () => {
    const changes = [CHANGE];
    const pages = [
      page({ changes }),
      page({ position: 'p-2', changes }),
      page({ position: 'p-2', end: false, changes }),
    ];
    const { reader, sent, time } = open(pages);
    for (let n = 1; n <= 3; n++) {
      await reader.next(5_000);
      expect([sent.length, time.pending]).toEqual([n, 0]);
    }
  });

  it('ends with the reader or the source, and nothing is asked from then on', async () => {
    for (const what of ['reader', 'source'] as const) {
      const held: Respond = (signal) =>
        new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted'))));
      const { reader, source, sent, time } = open([held]);
      const waiting = failureOf(reader, 5_000);
      await settle();
      if (what === 'reader') reader.close();
      else await source.close?.();
      expect(await waiting).toBe('the reader is closed');
      expect(await failureOf(reader)).toBe('the reader is closed');
      expect([sent.length, time.pending]).toEqual([1, 0]);
    }
  });
});

describe('options of httpGenerations()', () => {
  const URL_OF = 'https://a.example';
  it.each<[string, Partial<HttpGenerationsOptions>, string]>([
    ['http: on loopback', { url: 'http://127.0.0.1:4000' }, 'http://127.0.0.1:4000/generations'],
    ['http: with allowHttp', { url: 'http://a.example', allowHttp: true }, 'http://a.example/generations'],
    ['a path', { url: 'https://a.example/t/g' }, 'https://a.example/t/g'],
  ])('accepts %s', async (_what, options, url) => {
    const { reader, sent } = open([page()], options);
    await reader.next(0);
    expect(sent[0]!.url).toBe(url);
  });

  const header = (name: string, value: unknown) => ({ url: URL_OF, headers: { [name]: value } });
  it.each<[string, unknown, RegExp]>([
    ['no options', undefined, /expected an options object/],
    ['no url', {}, /"url" must be an absolute http: or https: URL/],
    ['a url of another type', { url: 5 }, /"url" must be a non-empty string/],
    ['a relative url', { url: '/generations' }, /"url" must be an absolute/],
    ['another scheme', { url: 'ftp://pos:hunter2@login.example' }, /"url" must be an absolute/],
    ['a broken url', { url: 'https://pos:hunter2@' }, /"url" must be an absolute/],
    ['http: on another host', { url: 'http://pos:hunter2@login.example' }, /must be https: .* or with allowHttp: true/],
    ['allowHttp of another type', { url: URL_OF, allowHttp: 'yes' }, /"allowHttp" must be true or false/],
    ['a fragment', { url: 'https://pos:hunter2@login.example/#a' }, /without a fragment/],
    ['credentials that are not encoded', { url: 'https://pos:%hunter2@login.example' }, /must be percent-encoded/],
    ['headers as a list', { url: URL_OF, headers: ['hunter2'] }, /"headers" must be an object/],
    ['no header object', { url: URL_OF, headers: null }, /must be an object of strings, got null/],
    ['a header that is no text', header('x-a', 5), /no valid header under "x-a"/],
    ['a line break', header('x-a', 'hunter2\r\nx: y'), /no valid header under "x-a"/],
    ['a header name with a blank', header('x a', 'b'), /no valid header under "x a"/],
    [
      'credentials twice',
      { ...header('authorization', 'Bearer hunter2'), url: 'https://pos:hunter2@a.example' },
      /exclude each other/,
    ],
    ['a fetch that is none', { url: URL_OF, fetch: 'fetch' }, /"fetch" must be a function/],
    ['a schedule that is none', { url: URL_OF, schedule: 7 }, /"schedule" must be a function/],
    ['a time of 0', { url: URL_OF, timeoutMs: 0 }, /"timeoutMs" must be a number of milliseconds/],
    ['a misspelt option', { url: URL_OF, timeout: 5 }, /did you mean "timeoutMs"/],
  ])('refuse %s', (_what, options, expected) => {
    const make = (): unknown => httpGenerations(options as HttpGenerationsOptions);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(expected);
    expect(make).not.toThrow('hunter2');
  });

  it('make a source that has a mark, and that cannot be appended to', () => {
    const source = httpGenerations({ url: 'https://a.example' });
    expect(source.mark).toBe(true);
    expect(source).not.toHaveProperty('append');
  });
});
