import { get } from 'node:http';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { BARE } from './messages';

/** Subscribes to the bare messages of an engine; resolves once it is subscribed. */
export async function subscribeBare(url: string, listener: (message: string) => void): Promise<void> {
  if (url.startsWith('redis')) {
    const client = new Redis(url);
    client.on('message', (_, message) => listener(message));
    await client.subscribe(BARE);
    return;
  }
  if (url.startsWith('postgres')) {
    const client = new Client(url);
    await client.connect();
    client.on('notification', ({ payload }) => listener(payload ?? ''));
    await client.query(`LISTEN ${BARE}`);
    return;
  }
  await new Promise<void>((resolve, reject) => {
    get(new URL('/bench/subscribe', url), (res) => {
      res.setEncoding('utf8').on('data', (text: string) => {
        for (const [, message = ''] of text.matchAll(/^data: (.*)$/gm)) listener(JSON.parse(message) as string);
      });
      resolve();
    }).on('error', reject);
  });
}
