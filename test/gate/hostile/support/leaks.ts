import { GOOD } from './forge';

const WINDOW = 16;
const STEP = 4;
/** Long runs of what tokens and secrets are written in. */
const RUNS = /[A-Za-z0-9_+/=~.-]{16,}/g;
const HEADERS =
  /^(?:authorization|proxy-authorization|cookie|x-[a-z-]*(?:token|authorization)|sec-websocket-protocol):(.*)$/gim;

/**
 * Pieces of the credentials of a request that a text contains: any 16 characters in a row of a token, or of the value of
 * a header that carries one, percent-encoded or not.
 */
export function leaks(request: string, text: string): string[] {
  const output = `${text}\n${decode(text)}`;
  return secretsOf(`${request}\n${decode(request)}`)
    .flatMap(windows)
    .filter((piece) => output.includes(piece));
}

/** Tokens anywhere in the request, and the values of credential headers. */
function secretsOf(request: string): string[] {
  // A part of the good token alone looks like nothing in particular.
  const parts = GOOD.split('.').filter((part) => request.includes(part));
  const tokens = request.match(/ey[A-Za-z0-9_-]{14,}(?:\.[A-Za-z0-9_-]*)*/g) ?? [];
  const headers = [...request.matchAll(HEADERS)].flatMap(([, value = '']) => value.match(RUNS) ?? []);
  return [...parts, ...tokens, ...headers];
}

function windows(secret: string): string[] {
  const pieces: string[] = [];
  for (let start = 0; start + WINDOW <= secret.length; start += STEP) pieces.push(secret.slice(start, start + WINDOW));
  return pieces;
}

function decode(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_match, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}
