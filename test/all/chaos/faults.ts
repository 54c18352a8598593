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
  readonly errorMs?: number;
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
  /** By how much a clock is wrong, where that is more than the documentation allows, in ms. */
  readonly errorMs?: number;
  readonly isPossible?: (stand: Stand) => boolean;
  readonly run: (draw: Draw) => Promise<unknown>;
}

const hasEngine = ({ engine }: Stand): boolean => engine !== undefined;
/** Ms by which the clock of a gate steps: within the tolerance, and far beyond it. */
const STEP_MS = 1_500;
const FAR_STEP_MS = 30_000;
/** Far beyond the tolerance: what the publisher and the engine stamp is not what a gate goes by. */
const PUBLISHER_STEP_MS = 30_000;
const ENGINE_STEP_MS = 2 * 86_400_000;

function stepGate(stepMs: number): Kind['run'] {
  return async ({ gate, random, last }) => {
    gate.child?.send({ shiftMs: random() < 0.5 ? stepMs : -stepMs });
    await last();
    gate.child?.send({ shiftMs: 0 });
  };
}

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
  'step the clock of a gate': { concerns: 'gate', run: stepGate(STEP_MS) },
  'set the clock of a gate wrong': { concerns: 'gate', errorMs: FAR_STEP_MS, run: stepGate(FAR_STEP_MS) },
  'step the clock of the publisher': {
    isPossible: hasEngine,
    async run({ tokenServer, random, last }) {
      tokenServer.setClock(random() < 0.5 ? PUBLISHER_STEP_MS : -PUBLISHER_STEP_MS);
      await last();
      tokenServer.setClock(0);
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
    const [name, { concerns, errorMs, run }] = deck.pop() as (typeof possible)[number];
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
      ...(errorMs !== undefined && { errorMs }),
      run: async () => void (await run({ ...stand, random, gate, wire, last, burst })),
    };
  };
}
