import { connect } from 'node:net';

/** One response as received. */
export interface WireResponse {
  readonly status: number;
  /** By lower-case name; every value of a repeated header. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: string;
}

/** What was received on one connection. */
export interface Exchange {
  readonly responses: readonly WireResponse[];
  /** Why the received bytes are not a sequence of well-formed responses. */
  readonly malformed?: string;
  /** Whether the server closed the connection; else the client gave up waiting for more. */
  readonly closed: boolean;
  /** The error that ended the connection, if any: `ECONNRESET`. */
  readonly error?: string;
}

/** After this time without a byte, the server is waiting for the client. Responses take a few ms. */
export const SILENCE_MS = 300;
/** Where the server is expected to close, it gets more time: the machine may be busy. */
const PATIENCE_MS = 4_000;

/** Sends bytes on a connection of their own and reads until the server closes it, or has been silent for `silenceMs`. */
export function exchange(port: number, bytes: Buffer, silenceMs = PATIENCE_MS): Promise<Exchange> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    let error: string | undefined;
    let closed = true;
    socket.setEncoding('latin1').setTimeout(silenceMs, () => {
      const until = received.length;
      // A process that was held up runs its timers before it reads: what arrived in the meantime is not silence.
      setTimeout(() => {
        if (socket.destroyed || received.length > until) return;
        closed = false;
        socket.destroy();
      }, 20);
    });
    socket.on('data', (chunk: string) => (received += chunk));
    socket.on('end', () => socket.end());
    // A refused request may be cut off before all of it was sent: what was received until then counts.
    socket.on('error', (failure: NodeJS.ErrnoException) => (error = failure.code ?? failure.message));
    socket.on('close', () =>
      resolve({ ...parseResponses(received, bytes), closed, ...(error !== undefined && { error }) }),
    );
    socket.write(bytes);
  });
}

const STATUS_LINE = /^HTTP\/1\.1 ([1-5][0-9]{2}) [\x20-\x7e]*$/;
const NO_CHUNKS = '0\r\n\r\n';
/** RFC 9110 section 5.5, without obs-text: nothing of ours needs it. */
const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/;

/** Reads responses one after the other (RFC 9112), every byte accounted for. */
function parseResponses(received: string, request: Buffer): Pick<Exchange, 'responses' | 'malformed'> {
  const responses: WireResponse[] = [];
  let rest = received;
  try {
    while (rest !== '') {
      const withoutBody = responses.length === 0 && request.subarray(0, 5).toString('latin1') === 'HEAD ';
      const { response, length } = parseResponse(rest, withoutBody);
      responses.push(response);
      rest = rest.slice(length);
    }
    return { responses };
  } catch (error) {
    return { responses, malformed: `${(error as Error).message}: ${JSON.stringify(rest.slice(0, 200))}` };
  }
}

/**
 * Reads one response from the beginning of a text.
 *
 * @throws Error that says what is wrong, also when the text ends too early
 */
export function parseResponse(text: string, withoutBody = false): { response: WireResponse; length: number } {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) throw new Error('a head without an end');
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const status = STATUS_LINE.exec(statusLine)?.[1];
  if (status === undefined) throw new Error('no status line');
  const headers = parseFields(lines);
  const start = end + 4;
  // What is only on its way to a response, 100 Continue, has no body either.
  const none = withoutBody || status === '204' || status.startsWith('1');
  const { body, length } = none ? { body: '', length: 0 } : readBody(text.slice(start), headers);
  return { response: { status: Number(status), headers, body }, length: start + length };
}

function parseFields(lines: readonly string[]): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const [, name, value = ''] = FIELD_LINE.exec(line) ?? [];
    if (name === undefined) throw new Error(`no field line: ${JSON.stringify(line)}`);
    headers.set(name.toLowerCase(), [...(headers.get(name.toLowerCase()) ?? []), value]);
  }
  return headers;
}

function readBody(text: string, headers: ReadonlyMap<string, readonly string[]>): { body: string; length: number } {
  const lengths = headers.get('content-length');
  if (headers.has('transfer-encoding')) {
    // Only what node itself refuses, a missing Host for one, comes in chunks: in none.
    if (lengths || !text.startsWith(NO_CHUNKS)) throw new Error('a response in chunks');
    return { body: '', length: NO_CHUNKS.length };
  }
  if (!lengths) throw new Error('a response of unknown length');
  const length = Number(lengths[0]);
  if (lengths.length !== 1 || text.length < length) throw new Error('a body that is not as long as announced');
  return { body: text.slice(0, length), length };
}
