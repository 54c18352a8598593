import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import request from 'supertest';
import { authenticate, reportOnly, requireScope } from '../../src/gate';
import { createTestIssuer } from '../../src/testing';
import { cliScene } from './harness';

/** A day of mixed traffic before a gate on trial: the middleware of today accepts every token. */
async function mixedTraffic(): Promise<string> {
  const issuer = createTestIssuer();
  const lines: string[] = [];
  const log = (fields: object, msg: string): void => void lines.push(JSON.stringify({ ...fields, msg }));
  const logger = { info: log, warn: log, error: log };
  const app = express();
  const gate = authenticate({ ...issuer.options, logger });
  app.use(reportOnly(gate));
  app.use((req, res, next) => (req.headers.authorization ? next() : void res.sendStatus(401)));
  app.get('/orders/:id', reportOnly(requireScope('orders:read')), (_req, res) => void res.json({}));
  const send = async (path: string, token: string | undefined, times: number): Promise<void> => {
    for (let time = 0; time < times; time++) {
      await request(app)
        .get(path)
        .set(token === undefined ? {} : { authorization: `Bearer ${token}` });
    }
  };
  await send('/orders/1', issuer.token({ clientId: 'till-7', scope: 'orders:read orders:write menus:read' }), 20);
  await send('/orders/2', issuer.token({ clientId: 'kiosk-2', scope: 'menus:read' }), 5);
  await send('/orders/3', issuer.token({ clientId: 'till-8', scope: 'orders:read', audience: 'https://other' }), 3);
  await send('/orders/4', undefined, 2);
  await gate.close();
  return ['a line of something else', '{"msg":"started"}', ...lines.map((line) => `api-1 | ${line}`)].join('\n');
}

const scene = cliScene();

describe('tillgate report', () => {
  const log = join(scene.dataDir, 'api.log');
  beforeAll(async () => writeFileSync(log, await mixedTraffic()));

  it('sums up what would be decided otherwise', async () => {
    const { exitCode, stdout } = await scene.run('report', log);
    expect(exitCode).toBe(0);
    const [title, first, second, ...others] = stdout.trim().split('\n\n');
    expect(others).toEqual([
      'scopes that no request has needed\n  till-7: orders:write menus:read\n  kiosk-2: menus:read',
    ]);
    expect(title).toBe('8 requests would be decided otherwise, for 2 reasons.');
    expect(first?.split('\n').slice(0, 3)).toEqual([
      'insufficient_scope: 5 requests, the gate would send 403 instead of 200',
      '  clients: kiosk-2',
      '  routes: GET /orders/:id',
    ]);
    expect(second?.split('\n').slice(0, 3)).toEqual([
      'wrong_audience: 3 requests, the gate would send 401 instead of 200',
      '  clients: till-8',
      '  routes: GET /orders/:id',
    ]);
  });

  it('reads standard input, and prints JSON on request', async () => {
    const stdin = JSON.stringify({ reason: 'expired', status: 401, responded: 200, count: 7, path: 'GET /a' });
    const { stdout } = await cliScene({ stdin }).run('report', '--json');
    expect(JSON.parse(stdout)).toEqual({
      requests: 7,
      causes: [{ reason: 'expired', requests: 7, gate: 401, responded: [200], clients: [], routes: ['GET /a'] }],
      unusedScopes: {},
    });
  });

  it('leaves out lines that no trial has logged, however odd they are', async () => {
    const line = { reason: 'expired', status: 401, responded: 200, count: 2, path: 'GET /a', clientId: 'till-1' };
    const ODD_MEMBERS = [{ reason: 7 }, { path: 17 }, { path: undefined }, { status: '401' }, { responded: null }];
    const ODD_COUNTS = [-1, 1e300, 'many', 1.5].map((count) => ({ count }));
    const odd = [
      ...['null', '[]', '{', '{"responded":200}', '\u0000{"reason":{}}'],
      '{"clientId":"x","unused":[{"toString":1}]}',
      ...[...ODD_MEMBERS, ...ODD_COUNTS].map((members) => JSON.stringify({ ...line, ...members })),
    ];
    const stdin = [JSON.stringify(line), ...odd, JSON.stringify({ ...line, clientId: 7, advice: {} })].join('\n');
    const { exitCode, stdout } = await cliScene({ stdin }).run('report');
    expect([exitCode, stdout.split('\n')]).toEqual([
      0,
      expect.arrayContaining([
        '4 requests would be decided otherwise, for 1 reasons.',
        'expired: 4 requests, the gate would send 401 instead of 200',
        '  clients: till-1',
      ]),
    ]);
  });

  it('sums up 100,000 lines of one reason in time', async () => {
    const line = JSON.stringify({ reason: 'expired', status: 401, responded: 200, path: 'GET /a' });
    const { stdout } = await cliScene({ stdin: `${line}\n`.repeat(100_000) }).run('report');
    expect(stdout).toContain('expired: 100000 requests, the gate would send 401 instead of 200');
  });

  it('says so where a log has nothing', async () => {
    const { stdout } = await cliScene({ stdin: '{"msg":"started"}' }).run('report', '-');
    expect(stdout).toContain('the two decide alike, or the log is of something else');
  });

  it('refuses a file that is not there', async () => {
    const { exitCode, stderr } = await scene.run('report', '/nowhere.log');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('/nowhere.log: cannot be read')]);
  });
});
