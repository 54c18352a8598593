import { AuthError } from '../../../src/gate/core/errors';
import { systemClock, systemSchedule } from '../../../src/gate/core/clock';
import type { GenerationSource } from '../../../src/gate/generation/log';
import { startPublisher } from '../../../src/stores/publisher';
import type { Publisher, PublisherOptions } from '../../../src/stores/publisher';
import { Follower } from '../../../src/gate/generation/follower';
import type { FollowerOptions } from '../../../src/gate/generation/follow-log';
import { recordingLogger } from '../../support/log';
import { eventually } from '../support/eventually';

/** Ends what a test has opened, the last first; for `afterEach`. */
export interface Ends {
  add(end: () => unknown): void;
  run(): Promise<void>;
}

export function ends(): Ends {
  const list: (() => unknown)[] = [];
  return {
    add: (end) => void list.push(end),
    async run() {
      for (const end of list.splice(0).reverse()) await end();
    },
  };
}

/** A test that runs next to others of its block, because most of them wait most of the time; `opened` ends what it opens. */
export function scenario(name: string, run: (opened: Ends) => Promise<void>): void {
  it.concurrent(name, async () => {
    const opened = ends();
    try {
      await run(opened);
    } finally {
      await opened.run();
    }
  });
}

/** An authorization server: its durable record of changes, and its publisher. */
export interface AuthorizationServer {
  readonly publisher: Publisher;
  /** The last generation of each client, whose change was acknowledged. */
  readonly record: ReadonlyMap<string, number>;
  /** Changes a client credential and acknowledges it; returns whether the change is in the log. */
  change(clientId: string): Promise<boolean>;
}

/** @param record - of the server that ran before, to start it again */
export function startAuthorizationServer(
  source: GenerationSource,
  { record = new Map(), ...options }: Partial<PublisherOptions> & { readonly record?: Map<string, number> } = {},
): AuthorizationServer {
  const publisher = startPublisher({ source, changes: () => record, logger: recordingLogger(), ...options });
  return {
    publisher,
    record,
    change(clientId) {
      const generation = Math.max((record.get(clientId) ?? 0) + 1, Date.now());
      record.set(clientId, generation);
      return publisher.publish(clientId, generation);
    },
  };
}

/** The generations of a process with short limits, on real time. */
export function startProcess(source: GenerationSource, options: Partial<FollowerOptions> = {}): Follower {
  return new Follower({
    issuer: 'https://login.example',
    rule: { claim: 'generation', decimalString: false, toleranceMs: 60_000 },
    source,
    maxTokenAgeMs: 86_400_000,
    skewMs: 10_000,
    maxStalenessMs: 120_000,
    maxSilenceMs: 120_000,
    onStale: 'reject',
    ownsSource: false,
    pollMs: 5_000,
    readTimeoutMs: 5_000,
    random: Math.random,
    clock: systemClock,
    schedule: systemSchedule,
    logger: recordingLogger(),
    ...options,
  });
}

/** What a process says about a token of this generation: its reason to refuse, or `accepted`. */
export function verdict(process: Follower, clientId: string, generation: number): string {
  try {
    process.recheck(clientId, generation);
    return 'accepted';
  } catch (error) {
    if (error instanceof AuthError) return error.reason;
    throw error;
  }
}

/** Clients of which a process would accept a token from before their last change. */
export function unknownTo(process: Follower, record: ReadonlyMap<string, number>): string[] {
  return [...record]
    .filter(([id, generation]) => verdict(process, id, generation - 1) === 'accepted')
    .map(([id]) => id);
}

/** Waits until a process refuses every discarded token and accepts the current ones. */
export async function untilCurrent(
  process: Follower,
  record: ReadonlyMap<string, number>,
  patienceMs?: number,
): Promise<void> {
  await process.ready();
  const isCurrent = ([id, generation]: [string, number]): boolean =>
    verdict(process, id, generation - 1) === 'superseded' && verdict(process, id, generation) === 'accepted';
  await eventually('every change is in force', () => [...record].every(isCurrent), patienceMs);
}

/** A verdict that differs from the one before it. */
export interface Turn {
  readonly verdict: string;
  /** When it was given last, before another one. */
  untilMs: number;
}

/** Presents a token to a process every few ms from now on, until `stop()` returns how the verdicts went. */
export function presentToken(
  process: Follower,
  clientId: string,
  generation: number,
): { readonly turns: readonly Turn[]; stop(): readonly string[] } {
  const turns: Turn[] = [];
  const present = (): void => {
    const said = verdict(process, clientId, generation);
    const [turn, untilMs] = [turns.at(-1), Date.now()];
    if (turn?.verdict === said) turn.untilMs = untilMs;
    else turns.push({ verdict: said, untilMs });
  };
  present();
  const timer = setInterval(present, 2).unref();
  return {
    turns,
    stop() {
      clearInterval(timer);
      present();
      return turns.map((turn) => turn.verdict);
    },
  };
}

/** Changes a client credential again and again, each client once, until `stop()`. */
export function keepChanging(server: AuthorizationServer, perSecond: number): { stop(): Promise<void> } {
  let count = 0;
  const changes: Promise<boolean>[] = [];
  const timer = setInterval(() => changes.push(server.change(`client-${++count}`)), 1_000 / perSecond);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(changes);
    },
  };
}
