import { randomInt } from 'node:crypto';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { ROOT } from '../../repository/docs/blocks';
import { install } from '../package/consumer';
import { node } from '../package/npm';
import { packTillgate } from '../package/tarball';

/** What the examples of the page need, in the versions that they were tried with. */
const PACKAGES = {
  '@apollo/server': '^5.5.1',
  '@hono/node-server': '^2.1.9',
  '@nestjs/common': '^12.5.1',
  '@nestjs/core': '^12.5.1',
  '@nestjs/platform-express': '^12.5.0',
  '@nestjs/platform-fastify': '^12.5.0',
  '@trpc/server': '^11.25.2',
  express: '^5.0.0',
  fastify: '^5.12.8',
  graphql: '^16.15.0',
  'graphql-ws': '^6.0.6',
  hono: '^4.13.19',
  koa: '^3.3.0',
  'class-transformer': '^0.5.1',
  'class-validator': '^0.14.1',
  'reflect-metadata': '^0.2.2',
  'routing-controllers': '^0.11.3',
  rxjs: '^7.8.2',
  'socket.io': '^4.8.4',
  'socket.io-client': '^4.8.4',
  tsoa: '^6.6.0',
  ws: '^8.18.0',
};

/** Heading of the example, how it is called, and what the test changes in it. */
const EXAMPLES: readonly [name: string, heading: string, protocol: string, change?: readonly [string, string]][] = [
  ['node:http', 'node:http and node:http2', 'http'],
  ['node:http2', 'node:http and node:http2', 'http2', ["from 'node:http';", "from 'node:http2';"]],
  ['Fastify', 'Fastify', 'http'],
  ['Koa', 'Koa', 'http'],
  ['Hono', 'Hono on Node', 'http'],
  ['NestJS on Fastify', 'NestJS', 'http'],
  ['NestJS on Express', 'NestJS', 'http', ['new FastifyAdapter(), ', '']],
  ['routing-controllers', 'routing-controllers', 'http'],
  ['tsoa', 'tsoa', 'http'],
  ['tRPC', 'tRPC', 'http'],
  ['Apollo Server', 'Apollo Server', 'graphql'],
  ['Socket.IO', 'Socket.IO', 'socket.io'],
  ['GraphQL subscriptions', 'GraphQL subscriptions', 'graphql-ws'],
];

/** What a connection ends with when the credential of its client has changed. */
const ENDED: Readonly<Record<string, unknown>> = { 'socket.io': 'io server disconnect', 'graphql-ws': 4401 };

let folder: string;
let page: string;

beforeAll(async () => {
  const recipes = await readFile(join(ROOT, 'docs/recipes.md'), 'utf8');
  page = recipes.slice(recipes.indexOf('\n## Other frameworks\n'));
  folder = await mkdtemp(join(tmpdir(), 'tillgate-frameworks-'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module', dependencies: PACKAGES }));
  expect(await install(folder, await packTillgate('gate', 'testing'))).toMatchObject({ exitCode: 0 });
  await writeFile(join(folder, 'gate.mjs'), gateOf(exampleUnder('Other frameworks')));
  await copyFile(join(__dirname, 'probe.mjs'), join(folder, 'probe.mjs'));
  await copyFile(join(__dirname, '../storm/storm.cjs'), join(folder, 'storm.cjs'));
}, 600_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

function examplesUnder(heading: string): readonly string[] {
  const [, section = ''] = page.split(new RegExp(`^#+ ${heading}\n`, 'm'));
  const [own = ''] = section.split(/^#+ /m);
  return [...own.matchAll(/```[jt]s sketch\n([^]*?)```/g)].map(([, source = '']) => source);
}

const exampleUnder = (heading: string): string => examplesUnder(heading)[0] ?? '';

/** TypeScript as JavaScript, with decorators. */
async function compiled(source: string): Promise<string> {
  const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } };
  return (await transform(source, { loader: 'ts', target: 'node20', tsconfigRaw })).code;
}

/** The server of an example. That of tsoa comes after its controllers, from which tsoa makes the routes. */
async function serverUnder(heading: string): Promise<string> {
  if (heading !== 'tsoa') return exampleUnder(heading);
  const [controllers = '', server = ''] = examplesUnder(heading);
  await writeFile(join(folder, 'controllers.ts'), controllers);
  await writeFile(join(folder, 'tsoa.json'), JSON.stringify(TSOA));
  const { exitCode, output, errors } = await node(folder, 'node_modules/@tsoa/cli/dist/cli.js', 'spec-and-routes');
  expect({ exitCode, output, errors }).toMatchObject({ exitCode: 0 });
  expect(JSON.parse(await readFile(join(folder, 'swagger.json'), 'utf8'))).toMatchObject({
    paths: { '/orders': { get: { security: [{ oauth: ['orders:read'] }] } } },
  });
  await writeFile(join(folder, 'controllers.js'), await compiled(controllers));
  await writeFile(join(folder, 'routes.js'), await compiled(await readFile(join(folder, 'routes.ts'), 'utf8')));
  return server;
}

const TSOA = {
  entryFile: 'controllers.ts',
  noImplicitAdditionalProperties: 'silently-remove-extras',
  controllerPathGlobs: ['controllers.ts'],
  spec: { outputDirectory: '.', specVersion: 3 },
  routes: { routesDir: '.', authenticationModule: 'controllers.ts', esm: true },
};

/** The file that the examples share, with a test issuer in place of its issuer. */
function gateOf(source: string): string {
  const options = /issuer: '.*',\n\s*audience: '.*',/;
  expect(source).toMatch(options);
  const made = "import { createTestIssuer } from '@tillgate/testing';\nexport const issuer = createTestIssuer();\n";
  return made + source.replace(options, '...issuer.options,');
}

it('covers every example of the page, and none is longer than 25 lines', () => {
  const headings = [...page.matchAll(/^### (.*)$/gm)].map(([, heading]) => heading);
  expect([...new Set(EXAMPLES.map(([, heading]) => heading))]).toEqual(headings);
  const long = EXAMPLES.filter(([, heading]) => exampleUnder(heading).trimEnd().split('\n').length > 25);
  expect(long).toEqual([]);
});

it.each(EXAMPLES)(
  '%s refuses and accepts as the page says, also after connections were reset',
  async (name, heading, protocol, [from, to] = ['', '']) => {
    const file = `${name.replace(/\W/g, '-')}.mjs`;
    const example = await serverUnder(heading);
    expect(example).toContain(from);
    const source = example.replace(from, to).replace('3000', 'Number(process.env.PORT)');
    await writeFile(join(folder, file), await compiled(source));
    const seed = process.env['STORM_SEED'] ?? `${randomInt(2 ** 31)}`;
    const { exitCode, output, errors } = await node(folder, 'probe.mjs', file, protocol, seed);
    expect({ exitCode, seed, errors }).toEqual({ exitCode: 0, seed, errors: expect.any(String) });
    const [missing, weak, good, last] = JSON.parse(output.trim().split('\n').at(-1) ?? '');
    expect(last).toEqual({ ...good, body: good.body.replaceAll('till-1', 'till-2') });
    expect(good.body).toContain('"caller":"till-1"');
    expect(missing.body).toContain('Send an access token in the Authorization header');
    if (ENDED[protocol] !== undefined) return expect(good.ended).toBe(ENDED[protocol]);
    expect([missing.status, weak.status, good.status]).toEqual([401, 403, 200]);
    expect(missing.challenge).toBe('Bearer realm="api"');
    expect(weak.challenge).toContain('error="insufficient_scope"');
    expect(weak.challenge).toContain('scope="orders:read"');
    expect(weak.body).not.toContain('caller":"');
  },
);

/** What follows the error handler of the Fastify example, in place of its route: tests of a claim that throw and reject. */
const FAILING_TESTS = `
const THROWN = [undefined, null, 'route', 'router', { status: 401 }, new Error('the database is down')];
const failing = THROWN.flatMap((thrown) => [() => { throw thrown; }, () => Promise.reject(thrown)]);
let reached = 0;
for (const [index, test] of [...failing, () => true].entries()) {
  app.get(\`/\${index}\`, { onRequest: can('store', test) }, async () => ({ reached: ++reached }));
}
const headers = { authorization: \`Bearer \${issuer.token({ claims: { store: 'berlin-1' } })}\` };
const results = [];
for (let index = 0; index <= failing.length; index++) {
  const { statusCode, headers: { 'www-authenticate': challenge }, payload } = await app.inject({ url: \`/\${index}\`, headers });
  results.push([statusCode, challenge, JSON.parse(payload)]);
}
console.log(JSON.stringify(results));
`;

it('Fastify by the recipe responds with 500 where the test of a claim throws anything, and runs no handler', async () => {
  const claims = gateOf(exampleUnder('Other frameworks')).replaceAll('requireScope', 'requireClaim');
  await writeFile(join(folder, 'claims.mjs'), claims);
  const [untilRoute, route] = exampleUnder('Fastify').split(/^(?=app\.get\()/m);
  expect(route).toContain('can(');
  const source = untilRoute?.replace(
    "import { allow } from './gate.mjs';",
    "import { allow, issuer } from './claims.mjs';",
  );
  await writeFile(join(folder, 'failing.mjs'), `${source}${FAILING_TESTS}`);
  const { exitCode, output, errors } = await node(folder, 'failing.mjs');
  expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: expect.any(String) });
  const failed = { statusCode: 500, error: 'Internal Server Error', message: 'the test of claim store failed' };
  expect(JSON.parse(output.trim().split('\n').at(-1) ?? '')).toEqual([
    ...Array.from({ length: 12 }, () => [500, null, failed]),
    [200, null, { reached: 1 }],
  ]);
});
