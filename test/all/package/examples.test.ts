import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestIssuer } from '../../../src/testing';
import type { HttpTestIssuer } from '../../../src/testing';
import { collect, stop } from '../setup/process';
import { rawRequest, storm, WEBSOCKET } from '../storm/storm.cjs';
import { eventually } from '../support/eventually';
import { freePort } from '../support/free-port';
import { install } from './consumer';
import { npm } from './npm';
import { COMMAND, packTillgate } from './tarball';

const EXAMPLES = join(__dirname, '../../../examples');
const AUDIENCE = 'https://api.example.com';

/** A request of a caller with a token that the server responds to with 200. */
interface Good {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const ORDERS: Good = { path: '/v1/orders' };
const MCP: Good = {
  ...{ path: '/mcp', method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' },
  headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
};
const TOKEN: Good = {
  ...{ path: '/token', method: 'POST', body: 'grant_type=client_credentials&scope=orders:read' },
  headers: {
    Authorization: `Basic ${Buffer.from('till-9:till-9-secret').toString('base64')}`,
    'Content-Type': 'application/x-www-form-urlencoded',
  },
};

/** What is tried with the server of an example; of those without one, their own tests are all. */
const EXAMPLE_REQUESTS: Readonly<Record<string, Good | undefined>> = {
  'express5-typescript': ORDERS,
  'express4-commonjs': ORDERS,
  nestjs: ORDERS,
  mcp: MCP,
  'nats-jetstream': undefined,
  migration: undefined,
  'oidc-provider': TOKEN,
};
/** Its Express is another one: it is installed alone, the others as workspaces of one project, which share packages. */
const ALONE = 'express4-commonjs';
const TOGETHER = Object.keys(EXAMPLE_REQUESTS).filter((name) => name !== ALONE);

let folder: string;
let issuer: HttpTestIssuer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tillgate-examples-'));
  for (const name of [...TOGETHER, ALONE]) await cp(join(EXAMPLES, name), projectOf(name), { recursive: true });
  await writeFile(join(folder, 'together/package.json'), JSON.stringify({ private: true, workspaces: TOGETHER }));
  issuer = await startTestIssuer({ audience: AUDIENCE });
  const together = await packTillgate(...COMMAND);
  expect(await install(join(folder, 'together'), together)).toMatchObject({ exitCode: 0 });
  expect(await install(projectOf(ALONE), await packTillgate('gate', 'testing'))).toMatchObject({ exitCode: 0 });
}, 600_000);
afterAll(async () => {
  await issuer?.close();
  await rm(folder, { recursive: true, force: true });
});

it.each(Object.entries(EXAMPLE_REQUESTS))(
  'the example %s passes its own tests with the packed package, and goes on after connections were reset',
  async (name, good) => {
    const project = projectOf(name);
    const { scripts } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as Manifest;
    if (scripts.test !== undefined) {
      const { exitCode, output, errors } = await npm(project, 'test');
      if (exitCode !== 0) throw new Error(`${output}\n${errors}`);
    }
    if (good) await expectToSurvive(project, scripts.start ?? '', good);
  },
);

function projectOf(name: string): string {
  return name === ALONE ? join(folder, name) : join(folder, 'together', name);
}

interface Manifest {
  readonly scripts: { readonly test?: string; readonly start?: string };
}

async function expectToSurvive(cwd: string, start: string, { path, method = 'GET', headers, body }: Good) {
  const port = await freePort();
  // Its own tests have compiled what `npm start` compiles.
  const script = start.split(' ').at(-1) ?? '';
  const env = {
    PORT: `${port}`,
    TILLGATE_AUTH_URL: issuer.issuer,
    TILLGATE_AUDIENCE: AUDIENCE,
    TILLGATE_ALLOW_HTTP: 'on',
  };
  const child = spawn(process.execPath, [script], { cwd, env: { ...process.env, ...env }, stdio: 'pipe' });
  const said = collect(child.stderr);
  const authorized = { Authorization: `Bearer ${issuer.token({ scope: 'orders:read' })}`, ...headers };
  const ask = async (): Promise<number> => {
    const url = `http://127.0.0.1:${port}${path}`;
    const response = await fetch(url, { method, headers: authorized, ...(body && { body }) });
    await response.text();
    return response.status;
  };
  try {
    await eventually(`${cwd} listens`, () =>
      ask().then(
        () => true,
        () => false,
      ),
    );
    const seed = Number(process.env['STORM_SEED'] ?? randomInt(2 ** 31));
    const requests = [
      rawRequest(method, path, authorized, body),
      rawRequest(method, path, headers, body),
      rawRequest(method, path, { ...authorized, ...WEBSOCKET }, body),
      rawRequest('POST', path, { ...authorized, Expect: '100-continue', 'Content-Length': '9' }),
    ];
    await storm({ port, connections: 80, requests, seed });
    const status = await ask().catch((error: unknown) => String(error));
    expect({ seed, status, exitCode: child.exitCode, said: said() }).toMatchObject({ status: 200, exitCode: null });
  } finally {
    await stop(child);
  }
}
