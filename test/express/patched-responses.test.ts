import express from 'express';
import type { RequestHandler } from 'express';
import request from 'supertest';
import { requireScope } from '../../src';
import { gateApp } from '../support/gate-app';
import { token } from '../support/issuer';

const GOOD = token();
const SECRET = 'the customers of all stores';

describe('unguarded, after responses that other middleware has patched', () => {
  /** As the package on-headers does it, on which compression and sessions build: a listener before the head is written. */
  const onHeaders =
    (listener: (res: Parameters<RequestHandler>[1]) => void): RequestHandler =>
    (_req, res, next) => {
      const writeHead = res.writeHead.bind(res) as (...args: unknown[]) => typeof res;
      res.writeHead = (...args: unknown[]) => {
        listener(res);
        return writeHead(res.statusCode, ...args.slice(1));
      };
      next();
    };
  /** As sessions do it: `end` is called later. */
  const endLater: RequestHandler = (_req, res, next) => {
    const end = res.end.bind(res) as (...args: unknown[]) => typeof res;
    res.end = ((...args: unknown[]) => (setImmediate(() => end(...args)), res)) as typeof res.end;
    next();
  };
  const toSuccess = onHeaders((res) => void (res.statusCode = 200));
  const toNotFound = onHeaders((res) => void (res.statusCode = 404));
  const missing: RequestHandler = (_req, res) => void res.status(404).json({ SECRET });
  const written: RequestHandler = (_req, res) => void (res.status(404), res.write(SECRET), res.end(SECRET));
  const ended: RequestHandler = (_req, res) => void res.status(404).end();
  const found: RequestHandler = (_req, res) => void res.json({ SECRET });

  it.each<[string, readonly RequestHandler[], number]>([
    ['a 404 that becomes a 200 while its head is written', [toSuccess, missing], 500],
    ['the same without a body', [toSuccess, ended], 500],
    ['the same in parts', [toSuccess, written], 500],
    ['the same, ended later', [endLater, toSuccess, missing], 500],
    ['the same, patched twice', [toSuccess, endLater, toSuccess, missing], 500],
    ['a 200, ended later', [endLater, found], 500],
    ['a 200 with a listener', [onHeaders(() => {}), found], 500],
    ['a 404 with a listener', [onHeaders(() => {}), missing], 404],
    ['a 200 that a guard allowed, with both', [requireScope('orders:read'), endLater, toSuccess, missing], 200],
    ['a 200 that would become a 404', [toNotFound, found], 500],
  ])('responds once and completely: %s', async (_what, handlers, status) => {
    const through = gateApp({ unguarded: 'refuse', routes: (app) => void app.get('/v1/orders', ...handlers) });
    for (let times = 0; times < 3; times++) {
      const response = await through.get(GOOD);
      expect(response.status).toBe(status);
      if (status === 500) expect(response.body).toMatchObject({ code: 'internal_error' });
    }
  });

  it.each<[string, RequestHandler]>([
    ['a listener before the head', onHeaders(() => {})],
    ['a session that ends later', endLater],
  ])('also when the response was patched before the gate: %s', async (_what, before) => {
    const { gate } = gateApp({ unguarded: 'refuse' });
    const app = express().use(before, gate, found);
    await request(app).get('/').set('Authorization', `Bearer ${GOOD}`).expect(500);
  });

  it.each<[string, readonly RequestHandler[], RequestHandler]>([
    ['with a body', [toSuccess], missing],
    ['without a body', [toSuccess], ended],
    ['in parts', [toSuccess], written],
    ['with an explicit head', [toSuccess], (_req, res) => void res.writeHead(404).end(SECRET)],
    ['ended later', [toSuccess, endLater], missing],
    ['ended later by an outer one', [endLater, toSuccess], missing],
  ])('sends no byte of a 404 that middleware before the gate makes a 200: %s', async (_what, before, handler) => {
    const { gate, log } = gateApp({ unguarded: 'refuse' });
    const app = express().use(...before, gate, handler);
    const sent = request(app).get('/').set('Authorization', `Bearer ${GOOD}`);
    await expect(sent).rejects.toThrow('socket hang up');
    expect(log.at('error')).toHaveLength(1);
    const guarded = express().use(...before, gate, requireScope('orders:read'), handler);
    await request(guarded).get('/').set('Authorization', `Bearer ${GOOD}`).expect(200);
  });

  it.each(['writeHead', 'write', 'end'] as const)(
    'calls %s of middleware before the gate for a response that a guard allowed',
    async (name) => {
      const called: string[] = [];
      const patch: RequestHandler = (_req, res, next) => {
        const original = res[name].bind(res) as (...args: unknown[]) => never;
        res[name] = (...args: unknown[]) => (called.push(name), original(...args));
        next();
      };
      const { gate } = gateApp({ unguarded: 'refuse' });
      const app = express().use(patch, gate, requireScope('orders:read'), written);
      expect((await request(app).get('/').set('Authorization', `Bearer ${GOOD}`)).text).toBe(SECRET + SECRET);
      expect(called).toEqual([name]);
    },
  );

  it('calls back a handler whose response it could not send', async () => {
    const { gate } = gateApp({ unguarded: 'refuse' });
    const called: string[] = [];
    const handler: RequestHandler = (_req, res) => void res.status(404).end(SECRET, () => called.push('end'));
    const app = express().use(toSuccess, gate, handler);
    await expect(request(app).get('/').set('Authorization', `Bearer ${GOOD}`)).rejects.toThrow('socket hang up');
    expect(called).toEqual(['end']);
  });

  it('does not count the guard of an earlier gate', async () => {
    const { gate: first } = gateApp();
    const { gate: second } = gateApp({ unguarded: 'refuse' });
    const app = express().use(first, requireScope('orders:read'), second, found);
    await request(app).get('/').set('Authorization', `Bearer ${GOOD}`).expect(500);
    const guarded = express().use(first, second, requireScope('orders:read'), found);
    await request(guarded).get('/').set('Authorization', `Bearer ${GOOD}`).expect(200);
  });
});
