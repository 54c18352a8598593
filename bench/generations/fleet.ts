import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { AuthenticateOptions } from '../../src/gate/index';
import type { FromServer, ToServer } from './messages';

/** How the resource servers follow the source. */
export interface FleetOptions {
  readonly servers: number;
  readonly url: string;
  readonly gate: object & Partial<AuthenticateOptions>;
}

/** Resource servers, each in a process of its own. */
export interface Fleet {
  /** Resolves once every server accepts the token. */
  accept(round: number, token: string): Promise<void>;
  /** Resolves with the time at which the last server refused it. */
  refused(round: number): Promise<number>;
  /** Resolves with the time at which the last server received the bare message of the round. Call it before it is sent. */
  received(round: number): Promise<number>;
  stop(): void;
}

/** Starts the servers and waits until each has read its source. */
export async function startFleet({ servers, url, gate }: FleetOptions): Promise<Fleet> {
  const args = [url, JSON.stringify(gate)];
  const children = Array.from({ length: servers }, () =>
    fork(join(__dirname, 'resource-server.ts'), args, { execArgv: ['--conditions=source', '--import', 'tsx'] }),
  );
  const stop = (): void => children.forEach((child) => child.kill());
  process.once('exit', stop);
  await Promise.all(children.map((child) => next(child, (message) => message.kind === 'ready')));

  const each = (round: number, kind: FromServer['kind']): Promise<FromServer[]> =>
    Promise.all(children.map((child) => next(child, (m) => m.kind === kind && 'round' in m && m.round === round)));
  const pending = new Map<number, Promise<FromServer[]>>();
  return {
    async accept(round, token) {
      const accepted = each(round, 'accepted');
      pending.set(round, each(round, 'refused'));
      for (const child of children) child.send({ kind: 'watch', round, token } satisfies ToServer);
      await accepted;
    },
    async refused(round) {
      const responses = (await pending.get(round)) ?? [];
      pending.delete(round);
      return latest(responses);
    },
    received: async (round) => latest(await each(round, 'bare')),
    stop,
  };
}

function latest(responses: readonly FromServer[]): number {
  return Math.max(...responses.map((response) => ('at' in response ? response.at : NaN)));
}

function next(child: ChildProcess, fits: (message: FromServer) => boolean): Promise<FromServer> {
  return new Promise((resolve, reject) => {
    function listen(message: FromServer): void {
      if (message.kind === 'failed') return settle(() => reject(new Error(message.message)));
      if (fits(message)) settle(() => resolve(message));
    }
    function exited(code: number | null): void {
      settle(() => reject(new Error(`a resource server ended with ${code}`)));
    }
    function settle(then: () => void): void {
      child.off('message', listen).off('exit', exited);
      then();
    }
    child.setMaxListeners(50).on('message', listen).on('exit', exited);
  });
}
