/** One event of a stream (WHATWG HTML section 9.2.6). */
export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
}

/** What a parser tells. */
export interface SseHandlers {
  readonly onEvent: (event: ServerSentEvent) => void;
  /** The id to send as `Last-Event-ID` when connecting again; `''` when the server has reset it. */
  readonly onLastEventId: (id: string) => void;
  /** Pause in ms that the server asks for before a reconnection. */
  readonly onRetry: (delayMs: number) => void;
}

/** A stream that never ends a line or an event must not fill the memory. */
const LONGEST_EVENT = 65_536;

/**
 * Opens a parser for one `text/event-stream`; feed it bytes as they come (WHATWG HTML section 9.2.6).
 *
 * The current `eventsource-parser` is ESM only and needs a newer Node than we support.
 *
 * @throws RangeError from `push` when a line or an event grows beyond 64 Ki characters.
 */
export function sseParser({ onEvent, onLastEventId, onRetry }: SseHandlers): { push(bytes: Uint8Array): void } {
  // Keeps code points together across chunks, and takes the byte order mark off the start.
  const decoder = new TextDecoder();
  let rest = '';
  let afterCarriageReturn = false;
  let type = '';
  let data: string[] = [];
  let dataLength = 0;
  let id: string | undefined;

  function push(bytes: Uint8Array): void {
    let text = decoder.decode(bytes, { stream: true });
    if (text === '') return;
    // A CR LF may be torn apart by a chunk boundary: the CR has ended the line already.
    if (afterCarriageReturn && text.startsWith('\n')) text = text.slice(1);
    afterCarriageReturn = text.endsWith('\r');
    const lines = (rest + text).split(/\r\n|\n|\r/);
    rest = lines.pop() ?? '';
    lines.forEach(takeLine);
    if (rest.length + dataLength > LONGEST_EVENT) throw new RangeError('an event is too long');
  }

  function takeLine(line: string): void {
    if (line === '') return dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    takeField(field, value);
  }

  function takeField(field: string, value: string): void {
    if (field === 'event') type = value;
    else if (field === 'id' && !value.includes('\0')) id = value;
    else if (field === 'retry' && /^[0-9]+$/.test(value)) onRetry(Number(value));
    else if (field === 'data') {
      data.push(value);
      dataLength += value.length + 1;
      if (dataLength > LONGEST_EVENT) throw new RangeError('an event is too long');
    }
  }

  function dispatch(): void {
    // An id stays until the next one; a stream that has sent none yet must not reset the one of its predecessor.
    if (id !== undefined) onLastEventId(id);
    const event = { event: type || 'message', data: data.join('\n') };
    const isEmpty = data.length === 0;
    type = '';
    data = [];
    dataLength = 0;
    if (!isEmpty) onEvent(event);
  }

  return { push };
}
