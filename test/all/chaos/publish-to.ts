import { startPublisher } from '../../../src/stores';
import type { Change, GenerationSource, LogReader } from '../../../src/gate/generation';

type Dependencies = Partial<Pick<Parameters<typeof startPublisher>[0], 'clock' | 'schedule' | 'logger'>>;

/** Publishes what the log of a token server has to another log, with a mark, as an authorization server of one's own would. */
export async function publishTo(
  source: GenerationSource,
  own: GenerationSource,
  dependencies: Dependencies = {},
  onPublished: (change: Change) => void = () => undefined,
): Promise<{ close(): void }> {
  const record = new Map<string, number>();
  const reader = own.reader();
  await readOn(reader, 0, record);
  const publisher = startPublisher({ source, changes: () => record, ...dependencies });

  async function publish(change: Change): Promise<void> {
    if (await publisher.publish(...change)) onPublished(change);
  }

  async function follow(): Promise<void> {
    for (;;) for (const change of await readOn(reader, 30_000, record)) void publish(change);
  }
  // Ends with the reader.
  follow().catch(() => undefined);
  return {
    close() {
      reader.close();
      publisher.close();
    },
  };
}

async function readOn(reader: LogReader, waitMs: number, record: Map<string, number>): Promise<readonly Change[]> {
  const found: Change[] = [];
  for (let end = false; !end;) {
    const batch = await reader.next(waitMs);
    for (const [clientId, generation] of batch.changes) record.set(clientId, generation);
    found.push(...batch.changes);
    ({ end } = batch);
  }
  return found;
}
