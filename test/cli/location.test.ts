import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environmentOf } from '../../src/cli/location';

const cwd = mkdtempSync(join(tmpdir(), 'tillgate-cli-'));
const dataDir = join(cwd, 'data');
mkdirSync(join(cwd, 'shop'));
mkdirSync(dataDir);
writeFileSync(
  join(cwd, '.env'),
  `TILLGATE_PORT=1\nTILLGATE_AUTH_PORT=1\nTILLGATE_HOST=h\nTILLGATE_DATA_DIR=${dataDir}`,
);
writeFileSync(join(dataDir, 'servers.json'), '{"TILLGATE_PORT":"2","TILLGATE_AUTH_PORT":"2"}');
const variables = { ...process.env };
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in variables)) delete process.env[name];
});
afterAll(() => rmSync(cwd, { recursive: true }));

describe('the variables of a command', () => {
  it('are those of the environment, of the running servers, and of .env, in this order', () => {
    expect(environmentOf({ cwd, env: { TILLGATE_AUTH_PORT: '3' } }, {}, false)).toEqual({
      TILLGATE_AUTH_PORT: '3',
      TILLGATE_PORT: '2',
      TILLGATE_HOST: 'h',
      TILLGATE_DATA_DIR: dataDir,
    });
  });

  it('that starts servers are its options, then the environment, then .env', () => {
    const env = { TILLGATE_PORT: '3', TILLGATE_AUTH_PORT: '3' };
    expect(environmentOf({ cwd, env }, { port: '4' }, true)).toEqual({
      TILLGATE_PORT: '4',
      TILLGATE_AUTH_PORT: '3',
      TILLGATE_HOST: 'h',
      TILLGATE_DATA_DIR: dataDir,
    });
  });

  it('are in no file in production', () => {
    const env = { NODE_ENV: 'production' };
    expect(environmentOf({ cwd, env }, { app: './shop/app.js' }, true)).toEqual(env);
  });

  it('are in the file next to the app, which gets them too, or else in the one of the current directory', () => {
    const options = { app: './shop/app.js' };
    expect(environmentOf({ cwd, env: {} }, options, true)).toMatchObject({ TILLGATE_HOST: 'h' });
    writeFileSync(join(cwd, 'shop', '.env'), 'DATABASE_URL=postgres://db');
    expect(environmentOf({ cwd, env: {} }, options, true)).toEqual({ DATABASE_URL: 'postgres://db' });
    expect(process.env['DATABASE_URL']).toBe('postgres://db');
  });
});
