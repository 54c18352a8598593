import { appendFileSync, writeFileSync } from 'node:fs';

/** A change of a client credential; times are those of the driver, in ms since the epoch. */
export interface ChangeEntry {
  readonly kind: 'change';
  readonly client: string;
  readonly sentMs: number;
  /** Absent: there was no response, so nobody knows whether the change was made. */
  readonly ack?: { readonly atMs: number; readonly generation: number };
}

/** A request with a token, and its response; the status is 0 where none came. */
export interface RequestEntry {
  readonly kind: 'request';
  /** One process of a gate: another name after each restart. */
  readonly process: string;
  readonly client: string;
  readonly generation: number;
  readonly sentMs: number;
  readonly receivedMs: number;
  readonly status: number;
  /** Sent to a process that was started when all faults were over and has seen no newer token of the client. */
  readonly final?: boolean;
}

export interface FaultEntry {
  readonly kind: 'fault';
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** The gate that it concerns, without the number of its process; absent: all of them. */
  readonly gate?: string;
  /** Whether a gate may refuse with 503 while it lasts; a burst of requests does not allow it. */
  readonly isOutage: boolean;
}

/** A change of which the publisher has said that it is in the log, and what a reader of the log found after that. */
export interface PublishedEntry {
  readonly kind: 'published';
  readonly client: string;
  readonly generation: number;
  readonly atMs: number;
  /** When the log was read to its end. */
  readonly readMs: number;
  readonly isFound: boolean;
}

/** For how long a process could run in a period and did not, because the machine gave it no time. */
export interface DelayEntry {
  readonly kind: 'delay';
  readonly process: string;
  /** As in a fault. */
  readonly gate?: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly delayMs: number;
}

/** A process that ended without being told to. */
export interface CrashEntry {
  readonly kind: 'crash';
  readonly process: string;
  readonly atMs: number;
  readonly detail: string;
}

export interface MemoryEntry {
  readonly kind: 'memory';
  readonly process: string;
  readonly atMs: number;
  readonly bytes: number;
}

export type Entry = ChangeEntry | PublishedEntry | RequestEntry | FaultEntry | DelayEntry | CrashEntry | MemoryEntry;

/** What happened in a run: in memory, and as JSON lines in a file where one is given. */
export interface Ledger {
  readonly entries: readonly Entry[];
  add(entry: Entry): void;
}

export function openLedger(file?: string): Ledger {
  const entries: Entry[] = [];
  if (file !== undefined) writeFileSync(file, '');
  return {
    entries,
    add(entry) {
      entries.push(entry);
      if (file !== undefined) appendFileSync(file, `${JSON.stringify(entry)}\n`);
    },
  };
}
