import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Gate } from '../../src/gate/index';

/** Sends one request through a gate, without a network in between, and returns the status: 200 where it passes. */
export function ask(gate: Gate, token: string): Promise<number> {
  const req = new IncomingMessage(new Socket());
  req.method = 'GET';
  req.url = '/';
  req.headers = { authorization: `Bearer ${token}` };
  const res = new ServerResponse(req);
  return new Promise((resolve) => {
    const end = res.end.bind(res);
    res.end = ((...args: []) => {
      resolve(res.statusCode);
      return end(...args);
    }) as typeof res.end;
    gate(req, res, () => resolve(200));
  });
}
