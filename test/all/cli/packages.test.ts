import { peerDependencies } from '../../../src/gate/package.json';
import { loadedPackages } from '../support/loaded-packages';

/** Commands that need no peer but express, with arguments that end them early. */
const COMMANDS = [
  ['token', 'till', '--secret', 's', '--scope', 'a'],
  ['call', 'GET', '/v1/orders'],
  ['explain', 'not-a-token'],
  ['clients', 'list'],
  ['revoke', 'till'],
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
