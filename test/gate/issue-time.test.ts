import express from 'express';
import request from 'supertest';
import { authenticate, requireScope } from '../../src';
import { memoryGenerations } from '../../src/generation/memory';
import { createTestIssuer, expectProblem } from '../../src/testing';
import { fakeTime } from '../support/fake-time';

const SECOND = Date.parse('2026-05-01T12:00:00Z');

/** An issuer that stamps no generation, and a gate that compares the issue time. */
async function setUp() {
  const time = fakeTime(SECOND + 200);
  const issuer = createTestIssuer({ clock: time.clock });
  const generations = memoryGenerations({ clock: time.clock });
  const gate = authenticate({
    ...issuer.options,
    generationClaim: 'iat',
    generationSource: generations,
    schedule: time.schedule,
    exposeReasons: true,
  });
  await gate.ready();
  const app = express().use(gate);
  app.get('/orders', requireScope('orders:read'), (_req, res) => void res.json([]));
  const token = (clientId: string): string =>
    issuer.token({ clientId, scope: 'orders:read', claims: { generation: undefined } });
  const call = (bearer: string): request.Test => request(app).get('/orders').set('Authorization', `Bearer ${bearer}`);
  return { time, generations, token, call };
}

describe("generationClaim: 'iat'", () => {
  it('refuses tokens issued before the change, and in the same second; accepts those of the next one', async () => {
    const { time, generations, token, call } = await setUp();
    const before = token('pos-17');
    expect((await call(before)).status).toBe(200);

    await time.advance(300);
    await generations.append([['pos-17', time.clock()]]);
    await time.advance(10);
    expectProblem(await call(before), { status: 401, code: 'superseded' });
    expectProblem(await call(token('pos-17')), { status: 401, code: 'superseded' });
    expect((await call(token('kiosk'))).status).toBe(200);

    await time.advance(1_000);
    expect((await call(token('pos-17'))).status).toBe(200);
  });

  it('learns nothing from tokens: a later issue time proves no change', async () => {
    const { time, token, call } = await setUp();
    const first = token('pos-17');
    await time.advance(5_000);
    expect((await call(token('pos-17'))).status).toBe(200);
    expect((await call(first)).status).toBe(200);
  });
});
