import type { Change } from '../../src/gate/generation/log';
import { Engine } from './engine';
import type { PlannedEvent } from './plan';
import type { Process } from './process';
import type { Client } from './shop';
import type { World } from './world';

/** What an event does to a world. Whatever lasts is over when the world is healed. */
type Run = (world: World, event: PlannedEvent) => void;

const HOUR = 3_600_000;

/** Steps of a clock, in ms: within the tolerance, beyond it, beyond the staleness, minutes, nearly an hour. */
const STEPS = [400, 900, 1_500, 4_000, 7_000, 30_000, 61_000, 300_000, 3_000_000, 7_200_000];

export const EVENTS: Readonly<Record<string, Run>> = {
  change: (world, event) => world.shop.change(clientOf(world, event)),
  burst(world, event) {
    for (let n = 0; n < 1 + (event.n % 5); n++) world.shop.change(clientOf(world, event));
  },
  remove(world, event) {
    const client = clientOf(world, event);
    if (client.isDeleted) return;
    world.shop.change(client);
    client.isDeleted = true;
    world.tell(`${client.id} is deleted`);
  },
  create(world, event) {
    const client = clientOf(world, event);
    client.isDeleted = false;
    world.shop.change(client);
  },
  token(world, event) {
    const client = clientOf(world, event);
    if (!client.isDeleted) world.shop.issue(client);
  },

  stop: (world, { ms, n }) => restart(world, n % 4 === 0 ? 0 : ms, false),
  kill: (world, { ms }) => restart(world, ms, true),
  away(world, { ms, n }) {
    // Nobody publishes for longer than the bound, and every client changes meanwhile.
    const awayMs = 24_000 + ms;
    if (n % 3 === 0) world.shop.link.break('cut');
    else restart(world, awayMs, n % 3 === 1);
    if (n % 3 === 0) world.later(awayMs, () => world.shop.link.mend());
    const at = (atMs: number, run: () => void): void => world.later(atMs, run);
    at(200 + n, () => world.shop.clients.forEach((client) => world.shop.change(client)));
    const process = world.processes[n % world.processes.length] as Process;
    at(1_000 + 10 * n, () => {
      if (n % 2 === 0) return;
      process.stop();
      process.start();
    });
  },
  'slow record': (world, { ms, n }) => breakRecord(world, 100 + (n % 3) * 700, ms, n % 2 === 0),
  'failing record': (world, { ms, n }) => breakRecord(world, -1, ms, n % 2 === 0),
  'restored record'(world, { ms, n }) {
    world.shop.stop(true);
    world.shop.restoreRecord(n * 30);
    world.later(Math.min(ms, 3_000), () => {
      world.shop.start();
      // Whoever restores a record changes every client: the numbers since may have been used.
      for (const client of world.shop.clients) world.shop.change(client);
    });
  },

  wipe: (world) => lose(world, (engine) => engine.wipe()),
  'go back': (world, { n, ms }) => lose(world, (engine) => engine.set(engine.stateBefore(howFar(n, ms)))),
  'lose mark': (world) => lose(world, (engine) => engine.set({ ...engine.state, mark: undefined })),
  'fail over'(world, { n, ms, who }) {
    lose(world, (engine) => {
      world.engine = new Engine(() => world.time.nowMs, engine.stateBefore(howFar(n, ms)));
      if (n % 2 === 0) return;
      const process = world.processes[who] as Process;
      process.demoted ??= engine;
      process.wholeSinceMs = Infinity;
      world.later(ms, () => undemote(world, process));
    });
  },
  'wipe between': (world) => loseBetween(world, (engine) => engine.wipe()),
  'go back between': (world, { n, ms }) =>
    loseBetween(world, (engine) => engine.set(engine.stateBefore(howFar(n, ms)))),

  'break process'(world, { who, fault, ms, n }) {
    const { link } = world.processes[who] as Process;
    link.break(fault, 100 + n * 3);
    world.later(ms, () => link.mend());
  },
  'break all'(world, { fault, ms, n, client }) {
    const links = [world.shop.link, ...world.processes.map((process) => process.link)];
    for (const link of links) link.break(fault, 300 + n * 3);
    world.later(ms / 2, () => world.shop.change(world.shop.clients[client] as Client));
    world.later(ms, () => {
      for (const link of links) link.mend();
    });
  },
  /** What was pending arrives in pages, slowly. */
  'slow pages'(world, { who, ms, n }) {
    const awayMs = 18_500 + n * 2;
    world.shop.link.break('cut');
    world.later(300, () => {
      for (const client of world.shop.clients) for (let each = 0; each < 3; each++) world.shop.change(client);
    });
    const { link } = world.processes[who] as Process;
    world.later(awayMs - 500, () => link.break('slow', 700));
    world.later(awayMs, () => world.shop.link.mend());
    world.later(awayMs + 5_000 + ms, () => link.mend());
  },
  'break publisher'(world, { fault, ms, n }) {
    world.shop.link.break(fault, 100 + n * 3);
    world.later(ms, () => world.shop.link.mend());
  },

  'set process'(world, { who, ms, n }) {
    const { machine } = world.processes[who] as Process;
    machine.set(stepOf(n));
    if (n % 3 > 0) world.later(ms, () => machine.set(0));
  },
  'set publisher'(world, { ms, n }) {
    world.shop.machine.set(stepOf(n));
    if (n % 3 > 0) world.later(ms, () => world.shop.machine.set(0));
  },
  drift(world, { who, n }) {
    const { machine } = n % 4 === 0 ? world.shop : (world.processes[who] as Process);
    machine.set(machine.offsetMs, (n - 500) / 25_000);
  },

  restart(world, { who, ms, n }) {
    const process = world.processes[who] as Process;
    process.stop();
    world.later(n % 2 === 0 ? 0 : ms, () => process.start());
  },
  suspend(world, { who, ms, n }) {
    const process = n % 5 === 0 ? undefined : (world.processes[who] as Process);
    (process ?? world.shop).machine.suspend(ms);
    (process ?? world.shop).wholeSinceMs = Infinity;
    const end = (): void => void ((process ?? world.shop).wholeSinceMs = world.time.nowMs);
    world.later(ms, end);
  },

  microseconds: (world, event) => append(world, event, world.nowMs() * 1_000),
  'an hour ahead': (world, event) => append(world, event, world.nowMs() + HOUR - event.n * 100),
  'seconds ahead': (world, event) => append(world, event, world.nowMs() + event.n * 40),
  'days ahead': (world, event) => append(world, event, world.nowMs() + 30 * HOUR),
  'not a change': (world, event) => append(world, event, -1),
};

/** Brings everything back that an event has broken. */
export function heal(world: World): void {
  const { shop, processes } = world;
  world.tell('everything is whole from now on');
  world.engine.beforeUnit = undefined;
  shop.link.mend();
  if (shop.machine.rightSinceMs === Infinity) shop.machine.set(0);
  if (shop.machine.isSuspended) shop.wholeSinceMs = world.time.nowMs;
  shop.machine.suspend(0);
  mendRecord(world);
  shop.start();
  for (const process of processes) {
    process.link.mend();
    if (process.machine.isSuspended) process.wholeSinceMs = world.time.nowMs;
    process.machine.suspend(0);
    if (process.machine.rightSinceMs === Infinity) process.machine.set(0);
    undemote(world, process);
    process.start();
  }
}

function clientOf(world: World, { client }: PlannedEvent): Client {
  return world.shop.clients[client] as Client;
}

function stepOf(n: number): number {
  const step = STEPS[n % STEPS.length] as number;
  return n % 2 === 0 ? step : -step;
}

function restart(world: World, ms: number, isKilled: boolean): void {
  if (!world.shop.isUp) return;
  world.shop.stop(isKilled);
  if (ms === 0) world.shop.start();
  else world.later(ms, () => world.shop.start());
}

function breakRecord(world: World, recordMs: number, ms: number, isRestarted: boolean): void {
  world.shop.recordMs = recordMs;
  world.later(ms, () => mendRecord(world));
  if (isRestarted) restart(world, 0, false);
}

function mendRecord({ shop, time }: World): void {
  if (shop.recordMs === 0) return;
  [shop.recordMs, shop.wholeSinceMs] = [0, time.nowMs];
}

/** How far a log goes back: often by some marks only. */
function howFar(n: number, ms: number): number {
  return n % 3 === 0 ? ms : n * 2;
}

/** Something happens to the log itself; a token server's own log begins anew. */
function lose(world: World, run: (engine: Engine) => void): void {
  world.logSinceMs = world.time.nowMs;
  const { source } = world.plan.setting;
  if (source === 'engine') run(world.engine);
  else if (source === 'http') world.shop.serve();
  else restart(world, 0, true);
}

function loseBetween(world: World, run: (engine: Engine) => void): void {
  world.engine.beforeUnit = () => {
    world.tell('the log goes back between two units');
    lose(world, run);
  };
}

function undemote(world: World, process: Process): void {
  if (!process.demoted) return;
  process.demoted = undefined;
  process.wholeSinceMs = world.time.nowMs;
}

/** Somebody else appends to the log. */
function append(world: World, event: PlannedEvent, generation: number): void {
  const client = clientOf(world, event);
  const change: Change = [client.id, generation];
  client.foreign.push(generation);
  if (world.plan.setting.source === 'engine') world.engine.apply([change], undefined);
  else void world.shop.served?.log.append([change]).catch(() => client.foreign.pop());
}
