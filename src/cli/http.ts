import { readBody } from '../core/read-body';
import { CliError } from './command';
import type { CliIo } from './io';

/** An HTTP response, read to its end. */
export interface HttpResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON, or `undefined` if it is not JSON. */
  readonly body: unknown;
}

const TIMEOUT_MS = 15_000;
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/**
 * Sends a request.
 *
 * @throws CliError when there is no response, or one that is too large
 */
export async function send(io: CliIo, url: string, init: RequestInit = {}): Promise<HttpResponse> {
  const origin = URL.canParse(url) ? new URL(url).origin : url;
  let response: Response;
  let bytes: Buffer | undefined;
  try {
    response = await io.fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS), ...init });
    bytes = response.body ? await readBody(response.body, MAX_BODY_BYTES) : Buffer.alloc(0);
  } catch (error) {
    throw new CliError(
      `no response from ${origin} (${reasonOf(error)}); is it running? ${io.programName} dev starts both servers`,
    );
  }
  if (!bytes) throw new CliError(`the response from ${origin} is larger than ${MAX_BODY_BYTES / 1024 / 1024} MiB`);
  const { status, statusText, headers } = response;
  const text = new TextDecoder().decode(bytes);
  return { status, statusText, headers, text, body: parseJson(text) };
}

/** One line about a refusal: the `detail` of a problem (RFC 9457), or the `error_description` of RFC 6749. */
export function explainRefusal({ status, statusText, body }: HttpResponse): string {
  const { code, detail, error, error_description } = (body ?? {}) as Record<string, unknown>;
  const said = [code ?? error, detail ?? error_description].filter((part) => typeof part === 'string').join(': ');
  return `${status} ${said || statusText}`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * fetch says only "fetch failed"; what failed is the cause. Its other messages are not shown: one about a header quotes
 * the header, and with it a token.
 */
function reasonOf(error: unknown): string {
  const { cause, name } = error as { cause?: { code?: string; message?: string }; name?: string };
  return cause?.code ?? cause?.message ?? (name === 'TimeoutError' ? `none within ${TIMEOUT_MS / 1000} s` : 'not sent');
}
