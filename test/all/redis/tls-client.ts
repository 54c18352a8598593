import { generationsFromUrl } from '../../../src/generation/from-url';

/** Publishes and reads at the address that it is given, in a process whose certificates were chosen by its parent. */
async function main(url: string): Promise<void> {
  const source = generationsFromUrl(url);
  try {
    await source.publish?.('pos', 5);
    process.stdout.write(JSON.stringify([...(await source.read(0)).floors]));
  } catch (error) {
    process.stdout.write(String(error));
  } finally {
    await source.close?.();
  }
}

void main(process.argv[2] ?? '');
