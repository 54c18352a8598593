/** One process of a cluster: serves requests to itself for as long as it is told, and says how many they were. */
import { pass } from '../../test/all/work/requests';
import { sizedApp } from './app';

async function main(gated: boolean): Promise<void> {
  const sized = await sizedApp({ clients: 1_000, floors: 1_000, scopes: 3, routes: 1, issuers: 1 }, gated);
  const tokens = Array.from({ length: 1_000 }, (_, client) => `Bearer ${sized.token(client)}`);
  const serve = async (): Promise<void> => {
    for (const each of tokens) await pass(sized.app, each, sized.path);
  };
  for (let times = 0; times < 5; times++) await serve();
  process.on('message', (seconds: number) => void count(seconds));
  process.send?.('ready');

  async function count(seconds: number): Promise<void> {
    const started = performance.now();
    let served = 0;
    for (; performance.now() - started < seconds * 1_000; served += tokens.length) await serve();
    process.send?.(served / ((performance.now() - started) / 1_000));
  }
}

process.on('disconnect', () => process.exit());
void main(process.argv[2] === 'gated');
