import type { IncomingMessage, ServerResponse } from 'node:http';
import helmet from 'helmet';

/** Sets the headers of an answer. */
export type SetHeaders = (res: ServerResponse) => void;

/** Makes what sets helmet's headers: they are the same on every answer, so it is asked for them once. */
export function securityHeaders(): SetHeaders {
  const headers: [name: string, value: string][] = [];
  const recorder = {
    setHeader: (name: string, value: string) => headers.push([name, value]),
    removeHeader() {},
  };
  helmet()({} as IncomingMessage, recorder as unknown as ServerResponse, (error?: unknown) => {
    if (error !== undefined) throw error as Error;
  });
  return function setSecurityHeaders(res) {
    for (const [name, value] of headers) res.setHeader(name, value);
  };
}
