import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { contractCases, startTestIssuer } from '../../../src/testing';
import type { HttpTestIssuer } from '../../../src/testing';
import { failuresOf } from '../../testing/failures-of';
import { eventually } from '../support/eventually';
import { freePort } from '../support/free-port';

const NEEDED = ['python3-fastapi', 'python3-uvicorn', 'python3-jwt', 'python3-cryptography'];
/** Debian's packages belong to Debian's Python. */
const python = ['/usr/bin/python3', 'python3'].find(
  (one) => spawnSync(one, ['-c', 'import fastapi, uvicorn, jwt, cryptography']).status === 0,
);
if (python === undefined) console.warn(`skipped: FastAPI is missing; install ${NEEDED.join(' ')}`);

(python === undefined ? describe.skip : describe)('an API with FastAPI, and the document that it makes', () => {
  let issuer: HttpTestIssuer;
  beforeAll(async () => (issuer = await startTestIssuer()));
  afterAll(() => issuer.close());

  /** The names of the cases that fail. */
  async function failing(forgotten: 'nothing' | 'audience' | 'scopes') {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const argv = [join(__dirname, 'fastapi_app.py'), String(port), issuer.issuer, issuer.audience, forgotten];
    const server = spawn(python as string, argv, { stdio: ['ignore', 'ignore', 'inherit'] });
    try {
      const openapi = await eventually('FastAPI responds', async () => {
        const response = await fetch(`${url}/openapi.json`).catch(() => undefined);
        return response?.ok ? ((await response.json()) as object) : undefined;
      });
      const cases = contractCases({ url, openapi, issuer });
      const failed = (await failuresOf(cases)).map((text) => text.split('\n', 1)[0] ?? '');
      return { failed, documentation: cases.report().documentation };
    } finally {
      server.kill();
      await once(server, 'exit');
    }
  }

  it('fails no case, and the document lacks 401 and 403', async () => {
    const { failed, documentation } = await failing('nothing');
    expect(failed).toEqual([]);
    expect(documentation).toEqual([
      'GET /orders: 401, 403 are not documented',
      'GET /orders/{order_id}: 401, 403 are not documented',
      'POST /orders: 401, 403 are not documented',
    ]);
  });

  it('fails the cases of an audience that it forgets', async () => {
    const { failed } = await failing('audience');
    expect(failed).toContain('GET /orders refuses a token for another audience');
    expect(failed.filter((name) => !name.includes('audience'))).toEqual([]);
  });

  it('fails the cases of scopes that it forgets', async () => {
    const { failed } = await failing('scopes');
    expect(failed).toContain('POST /orders refuses a token without scopes');
    expect(failed.filter((name) => !/without scopes|similar to|every scope except/.test(name))).toEqual([]);
  });
});
