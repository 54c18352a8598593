import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { CommandContext } from '../command';
import { CliError, EXIT, print } from '../command';
import { APP_PACKAGES, AUTH_SERVER_PACKAGES, ownManifest } from '../../core/required-packages';

/** `tillgate init <directory>`: writes a small project to start from; never overwrites a file. */
export async function init(context: CommandContext, directory: string): Promise<number> {
  const root = resolve(directory);
  await requireEmpty(root, directory);
  const files = projectFiles(basename(root));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text, { flag: 'wx' });
  }
  const names = Object.keys(files);
  print(
    context,
    { directory: root, files: names },
    [
      `wrote ${names.join(', ')}\n\nGo on:\n`,
      `  cd ${directory}`,
      '  npm install',
      '  npm test',
      '  npm run dev            # with a token server; starts again when a file changes\n',
      'Or the token server and the API, each in a terminal of its own:\n',
      '  npm run token-server',
      '  cp .env.example .env   # names the authorization server',
      '  npm start',
    ].join('\n'),
  );
  return EXIT.ok;
}

async function requireEmpty(root: string, shown: string): Promise<void> {
  let entries: readonly string[];
  try {
    entries = await readdir(root);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw new CliError(`cannot use ${shown}: ${(error as Error).message}`, EXIT.usage);
  }
  if (entries.length > 0) {
    throw new CliError(
      `${shown} is not empty (${entries.length} entries); name a new or an empty directory`,
      EXIT.usage,
    );
  }
}

/** Files of a small project that uses the gate, by path. `name` is the name of its directory. */
export function projectFiles(name: string): Readonly<Record<string, string>> {
  return {
    'package.json': packageJson(name),
    'app.js': APP,
    'server.js': SERVER,
    'test/orders.test.js': TEST,
    '.env.example': ENVIRONMENT,
    // `.tillgate` holds client secrets and a private key.
    '.gitignore': 'node_modules/\n.env\n.tillgate/\ncredentials.json\n',
  };
}

function packageJson(name: string): string {
  const { version = '0.1.0', peerDependencies = {} } = ownManifest() ?? {};
  const scaffold = [...APP_PACKAGES, ...AUTH_SERVER_PACKAGES].filter((peer) => peer !== 'express');
  const manifest = {
    name:
      name
        .toLowerCase()
        .replace(/[^a-z0-9._-]+/g, '-')
        .replace(/^[._-]+/, '') || 'commerce-api',
    private: true,
    type: 'module',
    engines: { node: '^20.19.0 || ^22.12.0 || >=24.0.0' },
    scripts: {
      dev: 'tillgate dev --watch --app ./app.js',
      'token-server': 'tillgate dev --token-server',
      start: 'node --env-file=.env server.js',
      test: 'node --test',
    },
    dependencies: { express: '^5.3.0', tillgate: `^${version}` },
    // What `tillgate dev` needs: nothing that the API itself loads.
    devDependencies: {
      ...Object.fromEntries(scaffold.map((peer) => [peer, peerDependencies[peer]])),
      supertest: '^7.3.2',
    },
  };
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

const APP = `import express from 'express';
import { authenticate, problemHandler, requireScope } from 'tillgate';

// What happens to a request: the gate authenticates it, a guard per route asks for scopes, then your handler runs.
// Without options for the gate, authenticate() reads the TILLGATE_* variables; see .env.example.
export function createApp({ gate } = {}) {
  const app = express();
  app.use('/v1', authenticate(gate));
  app.get('/v1/orders', requireScope('orders:read'), (req, res) => {
    res.json({ caller: req.auth.clientId, data: [] });
  });
  app.use(problemHandler());
  return app;
}
`;

const SERVER = `import { createApp } from './app.js';

const port = Number(process.env.PORT ?? process.env.TILLGATE_PORT ?? 3000);
const server = createApp().listen(port, '127.0.0.1');
server.on('listening', () => console.log(\`http://127.0.0.1:\${server.address().port}\`));
server.on('error', (error) => {
  console.error(\`cannot listen on port \${port}: \${error.message}; set PORT to a free one\`);
  process.exit(1);
});
`;

const TEST = `import assert from 'node:assert/strict';
import { test } from 'node:test';
import request from 'supertest';
import { createTestIssuer, expectChallenge, expectProblem } from 'tillgate/testing';
import { createApp } from '../app.js';

const issuer = createTestIssuer();
const app = createApp({ gate: issuer.options });

function getOrders(token) {
  const call = request(app).get('/v1/orders');
  return token ? call.set('Authorization', \`Bearer \${token}\`) : call;
}

test('lists orders for a client with orders:read', async () => {
  const response = await getOrders(issuer.token({ clientId: 'pos-terminal', scope: 'orders:read' }));
  assert.equal(response.status, 200);
  assert.equal(response.body.caller, 'pos-terminal');
});

test('refuses a request without a token', async () => {
  const response = await getOrders();
  expectProblem(response, { status: 401, code: 'missing_token' });
  expectChallenge(response, {});
});

test('refuses a client without the scope', async () => {
  const response = await getOrders(issuer.token({ scope: 'items:read' }));
  expectProblem(response, { status: 403, code: 'insufficient_scope' });
});
`;

const ENVIRONMENT = `# {auth_url}: your authorization server. For development: npm run token-server starts one, at http://127.0.0.1:4000
TILLGATE_AUTH_URL=http://127.0.0.1:4000
# The aud that your access tokens carry.
TILLGATE_AUDIENCE=http://127.0.0.1:3000
# Where changes of client credentials are read, so that discarded tokens die immediately.
TILLGATE_GENERATIONS=http://127.0.0.1:4000/generations
`;
