import type { TcpProxy } from '../support/tcp-proxy';
import type { Resource, Stand } from './stand';

/** A seeded random number in [0, 1). */
export type Random = () => number;

export function pick<Item>(items: readonly Item[], random: Random): Item {
  return items[Math.floor(random() * items.length)] as Item;
}

/** The same numbers for the same seed (mulberry32). */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A fault that was drawn: what is done, and to whom. */
export interface Fault {
  readonly name: string;
  readonly isOutage: boolean;
  readonly gate?: string;
  /** Begins the fault and ends it; resolves when everything works again that a fault concerns. */
  readonly run: () => Promise<void>;
}

/** Where a fault happens, and how long it lasts. */
interface Draw extends Stand {
  readonly random: Random;
  readonly gate: Resource;
  /** Of a gate or of the publisher. */
  readonly wire: TcpProxy;
  /** Waits for some ms, at most 7 s. */
  readonly last: () => Promise<void>;
  readonly burst: () => Promise<void>;
}

interface Kind {
  /** Default: an outage of every gate. */
  readonly concerns?: 'gate' | 'nothing';
  readonly isPossible?: (stand: Stand) => boolean;
  readonly run: (draw: Draw) => Promise<unknown>;
}

const hasEngine = ({ engine }: Stand): boolean => engine !== undefined;
/** Far beyond the tolerance: what the engine stamps is not what a gate goes by. */
const ENGINE_STEP_MS = 2 * 86_400_000;

/** Clocks of gates and publishers go wrong in the worlds of test/simulation. */
const KINDS: Readonly<Record<string, Kind>> = {
  'kill a gate': { concerns: 'gate', run: ({ gate, restart }) => restart(gate) },
  'kill the token server': { run: ({ tokenServer }) => tokenServer.restart() },
  'kill everything': {
    async run({ engine, gates, tokenServer, restart }) {
      await engine?.kill();
      await Promise.all([engine?.start(), tokenServer.restart(), ...gates.map(restart)]);
    },
  },
  'kill the engine': {
    isPossible: hasEngine,
    async run({ engine, last }) {
      await engine?.kill();
      await last();
      await engine?.start();
    },
  },
  'wipe the log': { isPossible: hasEngine, run: async ({ engine }) => engine?.wipe() },
  'restore an older log': {
    isPossible: hasEngine,
    async run({ engine, last }) {
      await engine?.save();
      await last();
      await engine?.restore();
    },
  },
  'fail over to a replica that lags': {
    isPossible: ({ engine }) => engine?.failOver !== undefined,
    async run({ engine, random, gates, publisherWire }) {
      const port = await engine?.failOver?.(50 + random() * 500);
      for (const wire of [publisherWire, ...gates.map((gate) => gate.wire)]) wire?.switchTo(port as number);
    },
  },
  'cut a connection': { run: ({ wire }) => Promise.resolve(wire.cut()) },
  'stall a connection': {
    async run({ wire, last }) {
      wire.freeze();
      await last();
      wire.thaw();
    },
  },
  'leave a connection half open': {
    run({ wire }) {
      wire.freeze();
      wire.thaw();
      return Promise.resolve();
    },
  },
  'step the clock of the engine': {
    isPossible: ({ engine }) => engine?.setClock !== undefined,
    async run({ engine, random, last }) {
      engine?.setClock?.(random() < 0.5 ? ENGINE_STEP_MS : -ENGINE_STEP_MS);
      await last();
      engine?.setClock?.(0);
    },
  },
  'burst of requests': { concerns: 'nothing', run: ({ burst }) => burst() },
};

/** Names of the faults. */
export const FAULTS = Object.keys(KINDS);

/** Draws faults in a random order, each kind once before any comes again. */
export function drawFaults(stand: Stand, burst: () => Promise<void>, random: Random): () => Fault {
  const possible = Object.entries(KINDS).filter(([, { isPossible }]) => isPossible?.(stand) ?? true);
  let deck: typeof possible = [];
  return () => {
    if (deck.length === 0)
      deck = possible
        .map((kind) => ({ kind, at: random() }))
        .sort((a, b) => a.at - b.at)
        .map(({ kind }) => kind);
    const [name, { concerns, run }] = deck.pop() as (typeof possible)[number];
    const gate = pick(stand.gates, random);
    const wire = pick(
      [...(stand.publisherWire ? [stand.publisherWire] : []), ...stand.gates.map((one) => one.wire)],
      random,
    );
    const lastsMs = random() * 7_000;
    const last = async (): Promise<void> => void (await new Promise((resolve) => setTimeout(resolve, lastsMs)));
    return {
      name,
      isOutage: concerns !== 'nothing',
      ...(concerns === 'gate' && { gate: gate.name }),
      run: async () => void (await run({ ...stand, random, gate, wire, last, burst })),
    };
  };
}
