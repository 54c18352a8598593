import { generationsFromUrl } from '../../../src/gate/generation/from-url';
import type { GenerationSource, LogReader } from '../../../src/gate/generation';
import type { Engine } from './engines';
import type { Ledger } from './ledger';

/** Reads the log at its engine, without a wire in between, to see whether it has what its publisher calls published. */
export function observeLog(
  engine: Engine,
  ledger: Ledger,
): { find: (client: string, generation: number) => void; close: () => Promise<void> } {
  const highest = new Map<string, number>();
  let opened: { readonly port: number; readonly source: GenerationSource; readonly reader: LogReader } | undefined;
  let last: Promise<unknown> = Promise.resolve();

  function open(): LogReader {
    if (opened?.port === engine.port) return opened.reader;
    void opened?.source.close?.();
    const source = generationsFromUrl(engine.url(engine.port));
    opened = { port: engine.port, source, reader: source.reader() };
    return opened.reader;
  }

  async function readOn(): Promise<void> {
    const reader = open();
    for (let end = false; !end;) {
      const batch = await reader.next(0);
      for (const [client, generation] of batch.changes) {
        highest.set(client, Math.max(generation, highest.get(client) ?? 0));
      }
      ({ end } = batch);
    }
  }

  async function look(client: string, generation: number, atMs: number): Promise<void> {
    await readOn();
    const isFound = (highest.get(client) ?? 0) >= generation;
    ledger.add({ kind: 'published', client, generation, atMs, readMs: Date.now(), isFound });
  }

  return {
    find(client, generation) {
      const atMs = Date.now();
      // One after the other; while the engine is away nothing is found out.
      last = last.then(() => look(client, generation, atMs)).catch(() => undefined);
    },
    async close() {
      await last;
      await opened?.source.close?.();
    },
  };
}
