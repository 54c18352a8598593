import fc from 'fast-check';
import { sseParser } from '../../../src/generation/http/stream';

type Told = ['event', string, string] | ['id', string] | ['retry', number];

function parse(...chunks: (string | Uint8Array)[]): Told[] {
  const told: Told[] = [];
  const parser = sseParser({
    onEvent: ({ event, data }) => told.push(['event', event, data]),
    onLastEventId: (id) => told.push(['id', id]),
    onRetry: (delayMs) => told.push(['retry', delayMs]),
  });
  for (const chunk of chunks) parser.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  return told;
}

describe('sseParser', () => {
  it.each<[string, string, Told[]]>([
    ['an event with LF', 'data: a\n\n', [['event', 'message', 'a']]],
    ['an event with CR LF', 'data: a\r\n\r\n', [['event', 'message', 'a']]],
    ['an event with CR', 'data: a\r\r', [['event', 'message', 'a']]],
    ['a named event', 'event: generation\ndata: {}\n\n', [['event', 'generation', '{}']]],
    [
      'the name for one event only',
      'event: x\ndata: a\n\ndata: b\n\n',
      [
        ['event', 'x', 'a'],
        ['event', 'message', 'b'],
      ],
    ],
    ['several data lines', 'data: a\ndata:\ndata: b\n\n', [['event', 'message', 'a\n\nb']]],
    ['one leading space only', 'data:  a\ndata:b\n\n', [['event', 'message', ' a\nb']]],
    ['a line without a colon as an empty field', 'data\n\n', [['event', 'message', '']]],
    ['comments', ': heartbeat\n\n:\n\ndata: a\n\n', [['event', 'message', 'a']]],
    ['an event without data as none', 'event: x\n\ndata: a\n\n', [['event', 'message', 'a']]],
    ['an event that is cut off as none', 'data: a\n\ndata: b\n', [['event', 'message', 'a']]],
    ['unknown fields as nothing', 'foo: 1\n data: x\nDATA: y\ndata: a\n\n', [['event', 'message', 'a']]],
    ['a byte order mark', '\ufeffdata: a\n\n', [['event', 'message', 'a']]],
    [
      'an id',
      'id: 7\ndata: a\n\n',
      [
        ['id', '7'],
        ['event', 'message', 'a'],
      ],
    ],
    ['an id without data', 'id: 7\n\n', [['id', '7']]],
    ['an id with NUL as none', 'id: 7\0\ndata: a\n\n', [['event', 'message', 'a']]],
    [
      'an empty id as a reset',
      'id\ndata: a\n\n',
      [
        ['id', ''],
        ['event', 'message', 'a'],
      ],
    ],
    ['a retry', 'retry: 1500\n\n', [['retry', 1500]]],
    ['a retry that is not a number as none', 'retry: -1\nretry: 1.5\nretry: x\nretry:\n\n', []],
    ['colons in data', 'data: {"a":1}\n\n', [['event', 'message', '{"a":1}']]],
  ])('reads %s', (_, text, expected) => {
    expect(parse(text)).toEqual(expected);
  });

  it('keeps the id until the next one', () => {
    expect(parse('id: 7\ndata: a\n\ndata: b\n\n').filter(([kind]) => kind === 'id')).toEqual([
      ['id', '7'],
      ['id', '7'],
    ]);
  });

  it('tells an event as soon as its last line has ended, also with CR', () => {
    expect(parse('data: a\r', '\r')).toEqual([['event', 'message', 'a']]);
    expect(parse('data: a\r\n', '\r')).toEqual([['event', 'message', 'a']]);
    expect(parse('data: a\r\n\r', '\ndata: b\r\n\r\n')).toHaveLength(2);
  });

  it('reads the same wherever the chunks are cut, also inside a code point', () => {
    const line = fc.constantFrom('data: pä€🍕', 'data', 'id: 5', 'event: generation', ': beat', 'retry: 9', '', '');
    const ending = fc.constantFrom('\n', '\r\n', '\r');
    const stream = fc.array(fc.tuple(line, ending).map((parts) => parts.join(''))).map((lines) => lines.join(''));
    fc.assert(
      fc.property(stream, fc.array(fc.nat(9)), (text, sizes) => {
        const bytes = Buffer.from(text);
        const chunks: Uint8Array[] = [];
        let at = 0;
        for (const size of sizes) chunks.push(bytes.subarray(at, (at += size)));
        chunks.push(bytes.subarray(at));
        expect(parse(...chunks)).toEqual(parse(bytes));
      }),
    );
  });

  const half = 'x'.repeat(40_000);
  it.each<[string, readonly string[]]>([
    ['of many lines', ['data: x\n'.repeat(32_769)]],
    ['of two halves, the second without its end', [`data: ${half}\n`, `data: ${half}`]],
    ['of one line', [`data: ${'x'.repeat(65_536)}\n\n`]],
    ['of one line without its end', [`data: ${'x'.repeat(65_531)}`]],
  ])('gives up on an event of more than 64 Ki characters: %s', (_what, chunks) => {
    expect(() => parse(...chunks)).toThrow(new RangeError('an event is too long'));
  });

  it.each<[string, string, number]>([
    ['without its end', `data: ${'x'.repeat(65_530)}`, 0],
    ['of one line', `data: ${'x'.repeat(65_535)}\n\n`, 1],
    ['of empty lines', `${'data\n'.repeat(32_768)}\n`, 1],
  ])('takes an event of 64 Ki characters: %s', (_what, text, events) => {
    expect(parse(text)).toHaveLength(events);
  });

  it('gives up on a line or an event that never ends', () => {
    expect(() => parse(`data: ${'x'.repeat(65_536)}`)).toThrow(RangeError);
    expect(() => parse('data: x\n'.repeat(40_000))).toThrow(RangeError);
    expect(() => parse(...Array.from({ length: 7_000 }, () => '0123456789'))).toThrow(RangeError);
    expect(parse('data: x\n\n'.repeat(40_000))).toHaveLength(40_000);
  });
});
