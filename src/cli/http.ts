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

/**
 * Sends a request.
 *
 * @throws CliError when there is no response
 */
export async function send(io: CliIo, url: string, init: RequestInit = {}): Promise<HttpResponse> {
  try {
    const response = await io.fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS), ...init });
    const text = await response.text();
    const { status, statusText, headers } = response;
    return { status, statusText, headers, text, body: parseJson(text) };
  } catch (error) {
    const origin = URL.canParse(url) ? new URL(url).origin : url;
    throw new CliError(
      `no response from ${origin} (${reasonOf(error)}); is it running? ${io.programName} dev starts both servers`,
    );
  }
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

/** fetch says only "fetch failed"; what failed is the cause. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: string; message?: string }; message?: string };
  return cause?.code ?? cause?.message ?? message ?? String(error);
}
