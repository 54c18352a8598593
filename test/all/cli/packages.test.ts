import { rmSync } from 'node:fs';
import { peerDependencies } from '../../../package.json';
import { newDataDir } from '../../cli/data-dir';
import { loadedPackages } from '../support/loaded-packages';

/** Commands that need no peer but express, with arguments that end them early. */
const COMMANDS = [
  ['token', 'till', '--secret', 's', '--scope', 'a'],
  ['call', 'GET', '/v1/orders'],
  ['explain', 'not-a-token'],
  ['clients', 'list'],
  ['revoke', 'till'],
  ['generations', 'list'],
  ['completion', 'bash'],
  ['init', 'package.json'],
];

it.each(COMMANDS)('tillgate %s runs where the packages of the scaffold are not installed', (...argv) => {
  const loaded = loadedPackages(`
    const { run } = require('./src/cli/run');
    const silent = { write() {} };
    const fetch = () => Promise.reject(new TypeError('fetch failed'));
    await run(${JSON.stringify(argv)}, { env: {}, stdout: silent, stderr: silent, fetch, programName: 'tillgate' });`);
  // A gate looks for OpenTelemetry, and goes on without it.
  const others = ['express', '@opentelemetry/api'];
  expect(loaded.filter((name) => name in peerDependencies && !others.includes(name))).toEqual([]);
});

it('tillgate dev --token-server runs where the packages of the API are not installed, its log included', () => {
  const dataDir = newDataDir();
  const loaded = loadedPackages(`
    const Module = require('node:module');
    const { _resolveFilename: resolve } = Module;
    Module._resolveFilename = (name, ...rest) => {
      if (/^(pino|js-yaml|ajv|ajv-formats)(\\/|$)/.test(name)) throw new Error(name + ' is not installed');
      return resolve(name, ...rest);
    };
    const { run } = require('./src/cli/run');
    const env = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_DATA_DIR: ${JSON.stringify(dataDir)} };
    const stderr = { write: (line) => void JSON.parse(line) };
    const shared = { env, cwd: '.', stdout: { write() {} }, stderr, fetch, programName: 'tillgate' };
    const code = await run(['dev', '--token-server'], { ...shared, untilStopped: () => Promise.resolve() });
    if (code !== 0) throw new Error('exit code ' + code);`);
  rmSync(dataDir, { recursive: true, force: true });
  expect(loaded).toEqual(expect.arrayContaining(['express', 'jsonwebtoken']));
});
