import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import { feedOf } from '../../src/auth-server/generations/feed';
import type { ClientRow, KeyRing } from '../../src/auth-server/storage/state';
import { Store } from '../../src/auth-server/storage/store';
import { systemSchedule } from '../../src/core/clock';
import { feedHandler } from '../../src/generation/feed/handler';
import { generationsFeed } from '../../src/generation/feed/relay';
import type { GenerationsFeed } from '../../src/generation/feed/relay';
import { httpGenerations } from '../../src/generation/http/source';
import { memoryGenerations } from '../../src/generation/memory';
import type { GenerationSource } from '../../src/generation/source';
import type { GenerationSourceFixture } from '../../src/testing/index';
import { recordingLogger } from '../support/log';

const NO_KEYS = { signing: {}, retired: [] } as unknown as KeyRing;

/** A relay that follows a source in memory. */
export async function overRelay(): Promise<GenerationSourceFixture> {
  const root = memoryGenerations();
  const highest = new Map<string, number>();
  let published = 0;
  /** How many floors the last read can have found, and how many reads there were before it. */
  let last = { finds: 0, reads: 0 };
  const followed: GenerationSource = {
    ...root,
    read(sinceMs) {
      last = { finds: published, reads: relay.status().reads };
      return root.read(sinceMs);
    },
  };
  const relay: GenerationsFeed = generationsFeed({ source: followed, logger: recordingLogger() });
  await relay.ready();
  const server = createServer(express().use('/generations', relay));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const open = () => httpGenerations({ url, logger: recordingLogger() });
  const source = open();
  return {
    source,
    /** The cases read what has been published: resolves once the relay has it. */
    async publish(clientId, generation) {
      if (generation <= (highest.get(clientId) ?? -1)) return root.publish(clientId, generation);
      highest.set(clientId, generation);
      // Before its hint, which starts the read.
      const own = ++published;
      await root.publish(clientId, generation);
      while (last.finds < own || relay.status().reads <= last.reads) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    another: () => Promise.resolve(open()),
    disconnect: () => Promise.resolve(server.closeAllConnections()),
    async close() {
      await source.close?.();
      await relay.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * The feed of the embedded token server over its own store, which is written to directly: its API chooses generations
 * by itself.
 */
export async function overHttp(): Promise<GenerationSourceFixture> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tillgate-feed-'));
  const store = await Store.open({
    dataDir,
    clock: Date.now,
    logger: recordingLogger(),
    write: () => Promise.resolve(),
    newKeys: () => Promise.resolve(NO_KEYS),
  });
  const server = createServer(express().use('/generations', feedHandler(feedOf(store), systemSchedule)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const open = () => httpGenerations({ url, logger: recordingLogger() });
  const source = open();
  return {
    source,
    publish: (clientId, generation) => publish(store, clientId, generation),
    another: () => Promise.resolve(open()),
    disconnect: () => Promise.resolve(server.closeAllConnections()),
    async close() {
      await source.close?.();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await store.close();
      await rm(dataDir, { recursive: true });
    },
  };
}

function publish(store: Store, clientId: string, generation: number): Promise<void> {
  return store.change(({ clients }, { revision }) => {
    const known = clients.get(clientId)?.generation ?? -1;
    if (generation <= known) return { value: undefined };
    return { put: { clientId, generation, movedAt: revision } as ClientRow, value: undefined };
  });
}
