import { httpGenerations } from '../../../src/gate/generation/http/log';
import { memoryGenerations } from '../../../src/gate/generation/memory';
import { generationSourceCases } from '../../../src/testing/source-cases/source-cases';
import type { GenerationSourceFixture } from '../../../src/testing/source-cases/harness';
import { serveLog } from '../../gate/generation/http/scene';

/** The client, with what only the server can do: appending. */
async function create(): Promise<GenerationSourceFixture> {
  const server = await serveLog(memoryGenerations());
  const open = () => httpGenerations({ url: server.url });
  const source = open();
  return {
    source: { ...source, append: (changes, unit) => server.log.append(changes, unit), close: closeBoth },
    another: () => Promise.resolve(open()),
    disconnect: () => Promise.resolve(server.cut()),
    async close() {
      await source.close?.();
      await server.close();
    },
  };

  async function closeBoth(): Promise<void> {
    await source.close?.();
    await server.log.close();
  }
}

describe('a log over HTTP', () => {
  for (const { name, run } of generationSourceCases({ create, changes: 10_000 })) it(name, run);
});
