import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { shoot } from '../../test/all/support/load';
import type { Shot } from '../../test/all/support/load';
import { median, percentile, round, table } from '../stats';
import { startDevServers } from './dev-servers';
import type { Suite } from './suite';

/** Connections that never send a whole head. */
export const halfOpen: Suite = {
  about: 'half-open connections at the API and at the token server: how long 50 good requests take',
  defaults: { connections: 1_000 },
  async run({ connections = 0 }) {
    const servers = await startDevServers();
    const order = await servers.orderRequest();
    const rows = [];
    for (const [name, url, shot] of [
      ['API', servers.apiUrl, order],
      ['token server', servers.authUrl, servers.tokenRequest()],
    ] as const) {
      const held = await Promise.all(Array.from({ length: connections }, () => hold(url)));
      rows.push([name, connections, ...(await times(shot))]);
      held.forEach((socket) => socket.destroy());
    }
    await servers.stop();
    return table(['server', 'half-open connections', 'p50 ms', 'max ms', 'not 200'], rows);
  },
};

async function times(shot: Shot): Promise<number[]> {
  const ms: number[] = [];
  let failed = 0;
  for (let index = 0; index < 50; index++) {
    const outcome = await shoot(shot);
    ms.push(outcome.ms);
    if (outcome.status !== 200) failed++;
  }
  return [round(median(ms)), round(percentile(ms, 1)), failed];
}

async function hold(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write('GET /v1/orders HTTP/1.1\r\nHost: x\r\nX-Slow: ');
  return socket;
}
