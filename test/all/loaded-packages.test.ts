import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as cli from '../../src/cli/package.json';
import * as gate from '../../src/gate/package.json';
import * as kit from '../../src/testing/package.json';
import { newDataDir } from '../cli/data-dir';
import { countCodeLines } from '../repository/sources';
import { loadedFiles, loadedPackages } from './support/loaded-packages';
import { runSteps } from './transport/steps';

/** What every request needs, with the dependencies of passport. */
const OF_GATE = ['lru-cache', 'passport', 'passport-http-bearer', 'passport-strategy', 'pause', 'utils-merge'];

/** Runs the token server until it is ready. */
const tokenServer = (dataDir: string): string => `
  const { run } = require('./src/cli/run');
  const listening = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'error' };
  const env = { ...listening, TILLGATE_DATA_DIR: ${JSON.stringify(dataDir)} };
  const silent = { write() {} };
  await new Promise((ready) => {
    const untilStopped = () => new Promise(ready);
    void run(['dev', '--token-server'], { env, cwd: '.', stdout: silent, stderr: process.stderr, fetch, untilStopped, programName: 'tillgate' });
  });`;

describe('a process that loads', () => {
  it('tillgate loads passport, and neither express nor what only some requests need', () => {
    expect(loadedPackages(`require('./src/gate/index').authenticate`)).toEqual(OF_GATE);
  });

  it('a package loads nothing before a name of it is read', () => {
    const entries = ['gate/index', 'gate/generation/index', 'testing/index', 'stores/index'];
    expect(loadedPackages(entries.map((entry) => `require('./src/${entry}');`).join(' '))).toEqual([]);
  });

  it('tillgate/generations loads almost nothing: no client of a store', () => {
    expect(loadedPackages(`Object.values(require('./src/gate/generation/index'))`)).toEqual([]);
  });

  it('tillgate/possession loads its caches alone: no client of Redis', () => {
    expect(loadedPackages(`Object.values(require('./src/gate/possession/index'))`)).toEqual(['lru-cache']);
  });

  it('@tillgate/testing loads no package by its names, all of which `import` reads, or by a token', () => {
    const code = `const { createTestIssuer } = { ...require('./src/testing/index') }; createTestIssuer().token();`;
    expect(loadedPackages(code)).toEqual([]);
  });

  it('the command line loads commander alone to show its help', () => {
    const help = `require('./src/cli/run').run(['--help'], { env: {}, stdout: { write() {} }, stderr: process.stderr })`;
    expect(loadedPackages(`await ${help}`)).toEqual(['commander']);
  });

  it('the token server loads what it needs, once it is ready, and no client of a store', () => {
    const dataDir = newDataDir();
    const loaded = loadedPackages(tokenServer(dataDir));
    rmSync(dataDir, { recursive: true, force: true });
    const known = Object.keys({ ...cli.dependencies, ...kit.dependencies, ...gate.peerDependencies });
    // js-yaml reads the scopes of the openapi.yaml that is there.
    const needed = ['commander', 'cors', 'express', 'express-rate-limit', 'helmet', 'js-yaml', 'jsonwebtoken'];
    expect(loaded.filter((name) => known.includes(name))).toEqual(needed);
  });
});

/** A user's test without a test framework. */
const TEST = `
  const { authenticate, explain } = require('./src/gate/index');
  const { createTestIssuer, expectChallenge, startTestIssuer } = require('./src/testing/index');
  const issuer = createTestIssuer();
  const gate = authenticate(issuer.options);
  const { accepted } = await explain(issuer.token(), { gate });
  if (!accepted) throw new Error('the token was refused');
  expectChallenge({ status: 401, headers: { 'www-authenticate': 'Bearer realm="api"' } }, {});
  await (await startTestIssuer()).close();`;

describe('a test of a gate whose keys are given', () => {
  it('loads no test framework, and nothing of jwks-rsa: jose cannot be loaded in an untouched Jest', () => {
    const loaded = loadedPackages(TEST);
    expect(loaded).toContain('passport');
    const unwanted = /^(jwks-rsa|jose|jest.*|@jest.*|expect|vitest|@vitest.*|supertest|superagent|express)$/;
    expect(loaded.filter((name) => unwanted.test(name))).toEqual([]);
  });
});

/** Files of the gate that only some options, calls or refusals need. */
const LATE =
  /env\/|possession|introspect|opaque-verifier|call-limit|key-store|follow-log|from-url|generation\/log|held|report-only|metadata|explain|advice|recognition|no-token|unreachable|http\/log/;
const GATE = join(__dirname, '../../src/gate');

describe('the own files of the testing kit', () => {
  it('are few up to the first token: nothing of contract cases, audits, servers, and of the gate no verifier', () => {
    const names = loadedFiles(`require('./src/testing/index').createTestIssuer().token()`);
    const needed = ['index.js', 'issuer/test-issuer.js', 'issuer/test-token.js', 'issuer/token-shape.js'];
    expect(names.filter((name) => name.startsWith('src/testing/'))).toEqual(
      needed.map((name) => `src/testing/${name}`),
    );
    expect(names.filter((name) => /verifier|express|possession|net\//.test(name))).toEqual([]);
    expect(names.length).toBeLessThanOrEqual(27);
  });
});

describe('the own files of a gate', () => {
  const steps = runSteps(process.execPath, 'load', 'keys', 'gate').map(({ own }) => own as readonly string[]);
  const [loaded = [], given = [], fetched = []] = steps;

  it('are as few after require() as after the first 200 with given keys, and one more fetches', () => {
    // Sources only: the package is one file.
    expect(loaded.length).toBeLessThanOrEqual(56);
    expect(given).toEqual(loaded);
    expect(fetched.filter((file) => !loaded.includes(file))).toEqual([join('net', 'node-http.js')]);
  });

  it('are those that every request needs: an auditor reads at most 5,600 lines of code for a default gate', () => {
    expect(fetched.filter((file) => LATE.test(file))).toEqual([]);
    const lines = fetched.map((file) => countCodeLines(readFileSync(join(GATE, file.replace(/js$/, 'ts')), 'utf8')));
    expect(lines.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(5_600);
  });
});
