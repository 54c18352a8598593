import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { RequestHandler } from 'express';
import { createAuthServer } from '../../../src/cli/auth-server';

const ENDPOINTS = [
  ['POST', '/connect/token'],
  ['POST', '/connect/introspect'],
  ['GET', '/.well-known/oauth-authorization-server'],
  ['GET', '/.well-known/openid-configuration'],
  ['GET', '/.well-known/openid-configuration/jwks'],
  ['GET', '/clients'],
  ['POST', '/clients'],
  ['GET', '/clients/pos-17'],
  ['PATCH', '/clients/pos-17'],
  ['POST', '/clients/pos-17/secrets'],
  ['POST', '/clients/pos-17/revoke'],
  ['DELETE', '/clients/pos-17'],
  ['GET', '/generations'],
  ['GET', '/generations?after=x&wait=50'],
  ['GET', '/nowhere'],
] as const;

/** Responds, and then lets the token server see the request all the same. */
const respondFirst: RequestHandler = (_req, res, next) => {
  res.status(504).send('too slow');
  next();
};

/** Responds while the token server works: after it has read the head, before the body is there. */
const respondMeanwhile: RequestHandler = (_req, res, next) => {
  next();
  if (!res.headersSent) res.status(504).send('too slow');
};

/** Sends a request to every endpoint in an app that responds itself, and prints what came; exits 0 if it lives. */
async function main(dataDir: string): Promise<void> {
  const auth = await createAuthServer({ issuer: 'http://login.test', audience: 'x', dataDir });
  const { client_secret } = await auth.register({ client_id: 'pos-17', scope: 'orders:read' });
  const form = `grant_type=client_credentials&client_id=pos-17&client_secret=${client_secret}&scope=orders:read&token=x`;
  for (const middleware of [respondFirst, respondMeanwhile]) {
    const server = createServer(express().use(middleware).use(auth.handler));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    for (const [method, path] of ENDPOINTS) {
      const isForm = path.startsWith('/connect');
      const body = isForm ? form : '{"description":"new"}';
      const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json';
      const status = await send(port, method, path, type, method === 'GET' ? '' : body);
      process.stdout.write(`${middleware.name} ${method} ${path} ${status}\n`);
    }
    server.closeAllConnections();
    server.close();
  }
  await auth.close();
}

function send(port: number, method: string, path: string, type: string, body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': type, 'content-length': body.length };
    const call = request({ port, host: '127.0.0.1', method, path, headers }, (response) => {
      response.on('error', reject).on('close', () => resolve(response.statusCode));
      response.resume();
    });
    call.on('error', reject);
    call.flushHeaders();
    setImmediate(() => call.end(body));
  });
}

void main(process.argv[2] ?? '');
