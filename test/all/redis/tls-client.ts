import { generationsFromUrl } from '../../../src/gate/generation/from-url';

/** Appends and reads at the URL that it is given, in a process whose certificates were chosen by its parent. */
async function main(url: string): Promise<void> {
  const source = generationsFromUrl(url);
  try {
    await source.append?.([['pos', 5]]);
    process.stdout.write(JSON.stringify((await source.reader().next(0)).changes));
  } catch (error) {
    process.stdout.write(String(error));
  } finally {
    await source.close?.();
  }
}

void main(process.argv[2] ?? '');
