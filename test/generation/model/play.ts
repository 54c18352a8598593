import { FAR_STEP_BACK } from './script';
import type { Event, Script } from './script';
import { ModelServer } from './server';
import { MAX_TOKEN_AGE, MINUTE, World } from './world';
import type { ModelToken } from './world';

/** How long everything works at the end: the longest back-off, a read that hangs, a late commit, and a poll. */
const RECOVERY = 120_000;
/** Looks per pause, where a script is probed. */
const LOOKS = 5;

/**
 * Plays a script. Throws as soon as a server judges a token otherwise than the model, and when a server has not
 * recovered after everything has worked for two minutes. Returns how many tokens were verified.
 */
export async function play({ servers: kinds, probing, events }: Script): Promise<number> {
  const world = new World();
  const servers = kinds.map((kind) => new ModelServer(kind, world));
  const tokens: ModelToken[] = [];
  let steppedMs = -Infinity;
  let judged = 0;

  /** In the order of their issue: each proves its generation to a server, the earlier ones must pass before it does. */
  function presentAll(server: ModelServer): void {
    for (const token of tokens) if (server.present(token)) judged++;
  }

  async function pass(ms: number): Promise<void> {
    for (let look = 0; look < (probing ? LOOKS : 1); look++) {
      await world.time.advance(probing ? Math.ceil(ms / LOOKS) : ms);
      for (const server of servers) {
        server.observe();
        if (probing) for (const token of tokens) if (server.probe(token)) judged++;
      }
    }
  }

  /** Late commits and small steps, of either sign, must not add up to more than the overlap between two reads. */
  function stepSource(ms: number): void {
    if (ms !== FAR_STEP_BACK && world.time.clock() < steppedMs + 2 * MINUTE) return;
    steppedMs = world.time.clock();
    world.stepSource(ms);
  }

  async function happenToAll(event: Event): Promise<void> {
    switch (event.event) {
      case 'change':
        return world.change(event.client, event.writer, event.lateMs);
      case 'issue':
        return void tokens.push(world.issue(event.client, event.writer, event.lifetimeMs));
      case 'pass':
        return pass(event.ms);
      case 'step source':
        return stepSource(event.ms);
      case 'empty source':
        return world.empty();
      default:
        return happenTo(servers[event.server] ?? (servers[0] as ModelServer), event);
    }
  }

  async function happenTo(server: ModelServer, event: Extract<Event, { readonly server: number }>): Promise<void> {
    const { link } = server;
    switch (event.event) {
      case 'present':
        return presentLatest(server, event.nth);
      case 'present all':
        return presentAll(server);
      case 'restart':
        return server.restart();
      case 'reads':
        return void link.reads.push(...event.fates);
      case 'hints':
        return void link.hints.push(...repeat(event.fate, event.times));
      case 'watches':
        return void link.watches.push(...repeat(event.fate, event.times));
      case 'lose watch':
        return link.loseWatch();
      case 'hint anyway':
        return link.hintAnyway();
      case 'step server':
        return server.stepClock(event.ms);
      case 'mistaken clock':
        server.stepClock(event.ms);
        await pass(event.forMs);
        return server.stepClock(-event.ms);
    }
  }

  function presentLatest(server: ModelServer, nth: number): void {
    const token = tokens.at(-1 - nth);
    if (token && server.present(token)) judged++;
  }

  for (const event of events) {
    await happenToAll(event);
    await pass(0);
  }
  for (const { link } of servers) for (const queue of [link.reads, link.hints, link.watches]) queue.length = 0;
  await world.time.advance(RECOVERY);
  for (const client of ['pos', '__proto__']) tokens.push(world.issue(client, 0, MAX_TOKEN_AGE));
  for (const server of servers) {
    server.requireRecovered();
    presentAll(server);
  }
  await Promise.all(servers.map((server) => server.close()));
  return judged;
}

function repeat<Fate>(fate: Fate, times: number): Fate[] {
  return Array.from({ length: times }, () => fate);
}
