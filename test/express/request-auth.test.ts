import express from 'express';
import type { Express, RequestHandler } from 'express';
import { createServer, IncomingMessage } from 'node:http';
import request from 'supertest';
import { authenticate } from '../../src';
import type { Auth } from '../../src';
import { openPassage } from '../../src/express/passage';
import { showAuth } from '../../src/express/request-auth';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../support/issuer';
import { jwks, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

const gate = authenticate({
  issuer: ISSUER,
  audience: AUDIENCE,
  keys: jwks(testKey()),
  unguarded: 'allow',
  clock: () => NOW_MS,
  logger: recordingLogger(),
});
const AUTHORIZATION = `Bearer ${token()}`;
const caller: RequestHandler = (req, res) => void res.json({ caller: req.auth?.clientId ?? null });

async function callerOf(app: Express, authorization = AUTHORIZATION): Promise<unknown> {
  const response = await request(app).get('/v1/orders').set('Authorization', authorization).expect(200);
  return response.body.caller as unknown;
}

describe('req.auth', () => {
  it('is there for every handler behind the gate, and for none in front of it', async () => {
    const seen: unknown[] = [];
    const look: RequestHandler = (req, _res, next) => {
      seen.push(req.auth?.clientId);
      next();
    };
    const app = express().use(look, gate, look, caller);
    expect([await callerOf(app), await callerOf(app)]).toEqual(['pos-17', 'pos-17']);
    expect(seen).toEqual([undefined, 'pos-17', undefined, 'pos-17']);
  });

  it('is there in an app in which the gate’s app is mounted, when that has handed the request back', async () => {
    expect(await callerOf(express().use(express().use(gate)).use(caller))).toBe('pos-17');
  });

  it('is the gate’s, whatever something in front has put there', async () => {
    const forge: RequestHandler = (req, _res, next) => {
      req.auth = { clientId: 'forged' } as Auth;
      next();
    };
    expect(await callerOf(express().use(forge, gate, caller))).toBe('pos-17');
    expect(await callerOf(express().use(forge, caller))).toBe('forged');
  });

  it('is what something behind the gate makes of it', async () => {
    const rename: RequestHandler = (req, _res, next) => {
      req.auth = { ...req.auth!, clientId: 'renamed' };
      next();
    };
    expect(await callerOf(express().use(gate, rename, caller))).toBe('renamed');
  });

  it('is absent on a request that passed no gate', async () => {
    const app = express().get('/v1/open', caller).use(gate, caller);
    expect(await callerOf(app)).toBe('pos-17');
    expect((await request(app).get('/v1/open').set('Authorization', AUTHORIZATION)).body).toEqual({ caller: null });
  });

  it('is a member of a request that is node’s own', async () => {
    const server = createServer((req, res) =>
      gate(req, res, () => res.end(JSON.stringify(Object.getOwnPropertyDescriptor(req, 'auth')))),
    );
    const { text } = await request(server).get('/v1/orders').set('Authorization', AUTHORIZATION);
    expect(JSON.parse(text)).toMatchObject({
      value: { clientId: 'pos-17' },
      writable: true,
      enumerable: true,
      configurable: true,
    });
    expect('auth' in IncomingMessage.prototype).toBe(false);
  });

  it.each([
    ['frozen', Object.freeze(Object.create(IncomingMessage.prototype))],
    [
      'in use for something else',
      Object.create(IncomingMessage.prototype, { auth: { value: 'mine', writable: true } }),
    ],
    ['no request’s at all', null],
  ])('is a member where the prototype is %s', (_which, prototype: object | null) => {
    const auth = { clientId: 'pos-17' } as Auth;
    const req = Object.create(prototype) as IncomingMessage & { auth?: Auth };
    openPassage(req, { logger: recordingLogger(), unguarded: 'allow', refuse: fail }, auth);
    showAuth(req, auth);
    expect(Object.getOwnPropertyDescriptor(req, 'auth')?.value).toBe(auth);
  });
});

function fail(): never {
  throw new Error('nothing is refused here');
}
