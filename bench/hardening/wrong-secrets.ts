import { Agent } from 'node:http';
import { shoot, statuses } from '../../test/all/support/load';
import { table } from '../stats';
import { startDevServers } from './dev-servers';
import type { Suite } from './suite';

/** Guessing a secret. */
export const wrongSecrets: Suite = {
  about: 'wrong secrets for one client from one address, then the right one from there and from another',
  defaults: { requests: 10_000 },
  async run({ requests = 0 }) {
    const servers = await startDevServers();
    const agent = new Agent({ keepAlive: true, maxSockets: 50 });
    const wrong = await Promise.all(
      Array.from({ length: requests }, () => shoot({ ...servers.tokenRequest('wrong'), agent })),
    );
    agent.destroy();
    const counts = statuses(wrong);
    const told = wrong.filter(({ status, headers }) => status === 429 && Number(headers['retry-after']) > 0).length;
    const here = await shoot(servers.tokenRequest());
    const elsewhere = await shoot({ ...servers.tokenRequest(), localAddress: '127.0.0.2' });
    await servers.stop();
    return table(
      [
        'wrong secrets',
        '401',
        '429',
        'of them with Retry-After',
        'right secret from there',
        'right secret from elsewhere',
      ],
      [[requests, counts[401] ?? 0, counts[429] ?? 0, told, here.status, elsewhere.status]],
    );
  },
};
