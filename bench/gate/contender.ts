import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { SERVER_CORE, pinned } from '../load';
import type { Issuer } from './tokens';

/** What a process used since it was asked the last time. */
export interface Usage {
  readonly cpuUs: number;
  readonly delayP99Ms: number;
  readonly rssBytes: number;
}

/** A contender that runs in a process of its own, on a core of its own. */
export interface Contender {
  readonly url: string;
  usage(): Promise<Usage>;
  stop(): Promise<void>;
}

/** Starts one of `contenders/`. */
export async function startContender(name: string, issuer: Issuer): Promise<Contender> {
  const [command, args] = pinned(SERVER_CORE, process.execPath, [join(__dirname, 'server.mjs')]);
  const child = spawn(command, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  });
  const { issuer: iss, audience, jwksUri, jwks } = issuer;
  child.send({ contender: name, issuer: iss, audience, jwksUri, jwks });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return {
    url: `http://127.0.0.1:${port}/v1/orders`,
    async usage() {
      child.send('usage');
      const [usage] = (await once(child, 'message')) as [Usage];
      return usage;
    },
    async stop() {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}
