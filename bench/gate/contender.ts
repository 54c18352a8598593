import { join } from 'node:path';
import { startChild } from '../child-process';
import type { Issuer } from './tokens';

/** What a process used since the previous question. */
export interface Usage {
  readonly cpuUs: number;
  readonly delayP99Ms: number;
  /** Time that the event loop was busy. */
  readonly loopUs: number;
  /** Bytes, now. */
  readonly rss: number;
  readonly heapUsed: number;
}

/** A contender that runs in its own process, pinned to the server's cores. */
export interface Contender {
  readonly url: string;
  usage(): Promise<Usage>;
  stop(): Promise<void>;
}

interface StartOptions {
  readonly dpop?: true | undefined;
  readonly threads?: 1 | 2;
  /** Folder of the built gate, where it is not that of this clone. */
  readonly gate?: string | undefined;
}

/** Starts one of `contenders/`. */
export async function startContender(
  name: string,
  issuer: Issuer,
  { dpop, threads, gate }: StartOptions = {},
): Promise<Contender> {
  const child = startChild(join(__dirname, 'server.mjs'), { ...process.env, NODE_ENV: 'production' }, threads);
  const { issuer: iss, audience, algorithm, jwksUri, jwks } = issuer;
  const { port } = (await child.ask({
    contender: name,
    issuer: iss,
    audience,
    algorithm,
    jwksUri,
    jwks,
    dpop,
    gate,
  })) as {
    port: number;
  };
  return {
    url: `http://127.0.0.1:${port}/v1/orders`,
    usage: async () => (await child.ask('usage')) as Usage,
    stop: () => child.stop(),
  };
}
