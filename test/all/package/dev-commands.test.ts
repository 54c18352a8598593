import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { collect, started, stop } from '../setup/process';
import type { DevReport } from '../setup/tillgate';
import { eventually } from '../support/eventually';
import { freePort } from '../support/free-port';
import { install } from './consumer';
import { COMMAND, packTillgate } from './tarball';

const PACKAGES = { express: '^4.22.0', nodemon: '^3.0.0', tsx: '^4.0.0' };

const ROUTE = `requireScope('orders:read'), (_req, res) => res.json({ orders: [] })`;
const LISTEN = `app.listen(Number(process.env.TILLGATE_PORT), '127.0.0.1');`;
const FILES = {
  'app.js': `
const express = require('express');
const { authenticate, requireScope } = require('tillgate');
const app = express();
app.use('/v1', authenticate());
app.get('/v1/orders', ${ROUTE});
${LISTEN}
`,
  'app.ts': `
import express from 'express';
import { authenticate, requireScope } from 'tillgate';
const app: express.Express = express();
app.use('/v1', authenticate());
app.get('/v1/orders', ${ROUTE});
${LISTEN}
`,
  // An issuer that it would have to be asked for keys is not reached.
  'own-issuer.mjs': `
import express from 'express';
import { authenticate, requireScope } from 'tillgate';
const app = express();
const options = { issuer: 'https://login.example.com', audience: 'https://api.example.com', jwksUri: 'http://127.0.0.1:1/' };
app.use('/v1', authenticate(options));
app.get('/v1/orders', ${ROUTE});
${LISTEN}
`,
};

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tillgate-dev-commands-'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: PACKAGES }));
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text);
  expect(await install(folder, await packTillgate(...COMMAND))).toMatchObject({ exitCode: 0 });
}, 300_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A request as the console has it. */
interface Entry {
  readonly status: number;
  readonly method: string;
  readonly path: string;
  readonly client_id?: string;
  readonly reason?: string;
  readonly why?: { readonly fix?: string };
}

/** Starts `tillgate dev -- <command>` and waits until the app responds. */
async function startDev(...command: readonly string[]) {
  const ports = ['--port', `${await freePort()}`, '--auth-port', `${await freePort()}`];
  const dataDir = await mkdtemp(join(folder, 'data-'));
  const outer = Object.entries(process.env).filter(([name]) => !/^(TILLGATE_|NODE_ENV|NODE_OPTIONS|JEST_)/.test(name));
  const child = spawn(
    process.execPath,
    [join(folder, 'node_modules/@tillgate/cli/dist/main.js'), 'dev', '--json', ...ports, '--', ...command],
    {
      cwd: folder,
      env: { ...Object.fromEntries(outer), TILLGATE_DATA_DIR: dataDir },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const printed = eventually('the report of dev', () => stdout().trimEnd().endsWith('}'));
  await started(child, printed);
  const { base_url: base, auth_url: auth, clients } = JSON.parse(stdout()) as DevReport;
  const responds = (url: string): Promise<boolean> =>
    fetch(url).then(
      () => true,
      () => false,
    );
  await eventually(`the app of ${command.join(' ')}`, () => responds(base));

  return {
    stderr,
    exit,
    stop: () => stop(child),
    interrupt: () => child.kill('SIGINT'),
    listens: async () => [await responds(base), await responds(auth)],
    /** Calls the API as a demo client, or without a token. */
    async call(clientId?: string): Promise<number> {
      const client = clients.find(({ client_id }) => client_id === clientId);
      const form = new URLSearchParams({ ...client, grant_type: 'client_credentials', scope: 'items:read' });
      if (clientId === 'pos-terminal') form.set('scope', 'orders:read');
      const issued = client && (await fetch(`${auth}/connect/token`, { method: 'POST', body: form }));
      const { access_token: token } = ((await issued?.json()) ?? {}) as { access_token?: string };
      const headers = token === undefined ? undefined : { Authorization: `Bearer ${token}` };
      return (await fetch(`${base}/v1/orders`, { ...(headers && { headers }) })).status;
    },
    /** The last request with a status that the console has, with the explanation. */
    entry: (status: number): Promise<Entry> =>
      eventually(`a ${status} in the console`, async () => {
        const list = await fetch(`${auth}/console/api/requests?server=api&status=${status}&limit=1`);
        const [{ id } = {}] = ((await list.json()) as { requests: { id?: number }[] }).requests;
        return id !== undefined && ((await (await fetch(`${auth}/console/api/requests/${id}`)).json()) as Entry);
      }),
  };
}

it.each([
  ['an Express 4 app in CommonJS under nodemon', 'node_modules/.bin/nodemon', 'app.js'],
  ['an app in TypeScript under tsx', 'node_modules/.bin/tsx', 'app.ts'],
])('dev shows who called %s, why it was refused and what to do, and ends with it', async (_what, ...command) => {
  const dev = await startDev(...command);
  try {
    expect([await dev.call('pos-terminal'), await dev.call('kiosk'), await dev.call()]).toEqual([200, 403, 401]);
    const fix = 'Request the token with scope=orders:read: kiosk is registered with it.';
    expect(await dev.entry(200)).toMatchObject({ method: 'GET', path: '/v1/orders', client_id: 'pos-terminal' });
    expect(await dev.entry(403)).toMatchObject({ client_id: 'kiosk', reason: 'insufficient_scope', why: { fix } });
    expect(await dev.entry(401)).toMatchObject({ reason: 'missing_token' });
    const line = new RegExp(
      `"client":"kiosk","reason":"insufficient_scope","detail":"${fix}","msg":"403 GET /v1/orders"`,
    );
    expect(dev.stderr()).toMatch(line);
    dev.interrupt();
    expect(await dev.exit).toEqual([130, null]);
    expect(await dev.listens()).toEqual([false, false]);
  } finally {
    await dev.stop();
  }
});

it('dev tells an app with options for another issuer which variables it would use without them', async () => {
  const dev = await startDev(process.execPath, 'own-issuer.mjs');
  try {
    const status = await dev.call('pos-terminal');
    const { why } = await dev.entry(status);
    expect(why?.fix).toMatch(
      /^The token is good, and the app has options for another issuer\. Leave issuer, audience and keys out of authenticate\(\): then TILLGATE_AUTH_URL=http:\/\/127\.0\.0\.1:\d+ and TILLGATE_AUDIENCE=http:\/\/127\.0\.0\.1:\d+ count, which tillgate dev has set\.$/,
    );
    expect(dev.stderr()).toContain(why?.fix);
  } finally {
    await dev.stop();
  }
});
