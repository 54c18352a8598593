import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { anyPostgres } from '../support/postgres-server';
import { anyRedis } from '../support/redis-server';
import longSuites from './long-suites.json';
import { requireCommand, requirePackage } from './packages';
import { startScript } from './script';
import { startTillgate } from './tillgate';

const folder = mkdtempSync(join(tmpdir(), 'tillgate-setup-'));

function script(text: string): string {
  const path = join(folder, 'broken.mjs');
  writeFileSync(path, text);
  return path;
}

afterAll(() => rmSync(folder, { recursive: true }));

describe('a suite that cannot start what it needs', () => {
  it('names the package that is missing, or has another major version', () => {
    expect(() => requirePackage('no-such-server', 9)).toThrow(
      'this suite needs no-such-server 9, found none: run npm ci in the repository',
    );
    expect(() => requirePackage('express', 3)).toThrow(/^this suite needs express 3, found 5\.\d+\.\d+: run npm ci/);
  });

  it('names the program that is missing', () => {
    expect(() => requireCommand('no-such-program', 'apt-get install it')).toThrow(
      'this suite runs no-such-program, which is not installed: apt-get install it',
    );
  });

  it('names the variable of a server that does not respond, after one attempt each', async () => {
    let attempts = 0;
    const mute = createServer((socket) => {
      attempts += 1;
      socket.destroy();
    });
    await new Promise<void>((listening) => mute.listen(0, '127.0.0.1', listening));
    const host = `127.0.0.1:${(mute.address() as AddressInfo).port}`;
    await expect(anyRedis(`redis://${host}`)).rejects.toThrow(
      'TILLGATE_TEST_REDIS_URL: the server cannot be reached; start it, or unset the variable',
    );
    await expect(anyPostgres(`postgres://${host}/none`)).rejects.toThrow('TILLGATE_TEST_POSTGRES_URL: the server');
    expect(attempts).toBe(2);
    await new Promise((closed) => mute.close(closed));
  });

  it('shows what a script wrote that ended before it was ready', async () => {
    await expect(startScript(script('throw new Error("no port is free")'))).rejects.toThrow(
      /^broken\.mjs ended \(exit 1\)\. It wrote:\n[^]*no port is free/,
    );
  });

  it('shows what the scaffold wrote when it did not start', async () => {
    await expect(startTillgate('app', { TILLGATE_PORT: 'x' })).rejects.toThrow(
      /^tillgate app ended \(exit 78\)\. It wrote:\n[^]*TILLGATE_PORT/,
    );
  });
});

describe('a script that serves a suite', () => {
  it('passes on the error of a question that failed, and replies to the next one', async () => {
    const module = join(__dirname, 'reply-to-parent.mjs');
    const path = script(`
      import { replyToParent } from ${JSON.stringify(module)};
      replyToParent('here', ({ fail }) => { if (fail) throw new Error('as asked'); return 'fine'; });
    `);
    const running = await startScript<string>(path);
    expect(running.ready).toBe('here');
    await expect(running.ask({ fail: true })).rejects.toThrow('broken.mjs: Error: as asked');
    expect(await running.ask({})).toBe('fine');
    await running.stop();
    await expect(running.ask({})).rejects.toThrow('broken.mjs ended (SIGTERM)');
  });
});

it('the long suites that .ci/run leaves out are there', () => {
  const names = Object.keys(longSuites);
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !existsSync(join(__dirname, '../..', `${name}.test.ts`)))).toEqual([]);
});
