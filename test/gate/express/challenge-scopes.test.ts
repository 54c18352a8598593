import type { Request } from 'express';
import express from 'express';
import request from 'supertest';
import { authenticate, requireAuthenticated, requireClaim, requireScope } from '../../../src/gate';
import type { GateOptions, Middleware } from '../../../src/gate';
import { token, AUDIENCE, ISSUER, NOW_MS } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

describe('the scope of a 401', () => {
  function appWith(options: Pick<GateOptions, 'challengeScopes' | 'refusals'>, ...guards: Middleware[]) {
    const gate = authenticate({
      ...{ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS, logger: recordingLogger() },
      ...options,
    });
    return express().post('/mcp', gate, express.json(), ...guards, (_req, res) => void res.json('reached'));
  }

  async function challenge(app: express.Express, raw?: string): Promise<unknown> {
    const sent = request(app).post('/mcp').send({});
    const response = await (raw === undefined ? sent : sent.set('Authorization', `Bearer ${raw}`));
    const header = response.headers['www-authenticate'] as string;
    const body = response.body as { required_scopes?: unknown };
    return [response.status, /scope="([^"]*)"/.exec(header)?.[1], body.required_scopes];
  }

  it.each<[string, Middleware[], string | undefined]>([
    ['its guard requires', [requireScope('tools')], 'tools'],
    ['all guards of the row require', [requireScope('tools'), requireScope({ anyOf: ['a', 'tools'] })], 'tools a'],
    ['guards without scopes require: nothing', [requireAuthenticated(), requireClaim('a', () => true)], undefined],
    ['is required where no guard is: nothing', [], undefined],
  ])('is what %s, where the gate is on the route', async (_what, guards, scope) => {
    const app = appWith({}, ...guards);
    expect(await challenge(app)).toEqual([401, scope, undefined]);
    expect(await challenge(app, token({ claims: { exp: 1 } }))).toEqual([401, scope, undefined]);
  });

  it('is not in a 400', async () => {
    expect(await challenge(appWith({}, requireScope('tools')), 'a b')).toEqual([400, undefined, undefined]);
  });

  it('is challengeScopes where the gate has them', async () => {
    const app = appWith({ challengeScopes: ['tools', 'orders:read'] }, requireScope('tools'));
    expect(await challenge(app)).toEqual([401, 'tools orders:read', undefined]);
  });

  it('is in the headers of the error that the app gets', async () => {
    const app = appWith({ refusals: 'next' }, requireScope('tools'));
    const headers: unknown[] = [];
    app.use((error: { headers: unknown }, _req: Request, res: express.Response, _next: unknown) => {
      headers.push(error.headers);
      res.sendStatus(401);
    });
    await request(app).post('/mcp').expect(401);
    expect(headers).toEqual([{ 'WWW-Authenticate': 'Bearer realm="api", scope="tools"' }]);
  });
});
