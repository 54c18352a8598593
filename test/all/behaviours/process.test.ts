import { spawn } from 'node:child_process';
import { COMPILED } from '../support/compiled';
import { keyServer } from '../../support/key-server';
import { jwks, testKey } from '../../support/keys';

/** Runs a script in a new process; returns its output and exit code. */
function run(script: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, ['--eval', script], { cwd: COMPILED });
  const watchdog = setTimeout(() => child.kill('SIGKILL'), 120_000);
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((done) =>
    child.on('close', (code) => {
      clearTimeout(watchdog);
      done({ code, output });
    }),
  );
}

const options = (members: object): string =>
  JSON.stringify({ issuer: 'https://login.test', audience: 'https://api.test', ...members });

describe('a process with a gate in it', () => {
  it('exits: no timer and no socket of a gate keeps it alive', async () => {
    const server = await keyServer(testKey());
    const script = `
      const { authenticate } = require('./src/gate/index');
      const gate = authenticate(${options({ issuer: server.origin, generationSource: `${server.origin}/generations` })});
      const wait = setInterval(() => {
        const { keys } = gate.status().issuers[0];
        if (keys.state === 'starting') return;
        clearInterval(wait);
        console.log(keys.state, keys.keys);
      }, 10);
    `;
    const { code, output } = await run(script);
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/^fresh 1$/m) });
    await server.stop();
  });

  it('does not load jwks-rsa and jose when keys are given', async () => {
    const script = `
      const { authenticate } = require('./src/gate/index');
      authenticate(${options({ keys: jwks(testKey()) })});
      console.log(Object.keys(require.cache).filter((path) => /node_modules.(jwks-rsa|jose)/.test(path)).length);
    `;
    expect(await run(script)).toEqual({ code: 0, output: '0\n' });
  });
});
