import { Agent } from 'node:http';
import { createTestIssuer } from '../../../src/testing';
import { eventually } from '../support/eventually';
import { shoot } from '../support/load';
import { check } from './check';
import type { Count } from './check';
import type { SourceName } from './engines';
import { drawFaults, pick, seeded } from './faults';
import { openLedger } from './ledger';
import type { Entry } from './ledger';
import { BOUNDS, startStand } from './stand';
import type { Resource } from './stand';

const GATES = 3;
const CLIENTS = 20;
const REQUEST_EVERY_MS = 20;
const CHANGE_EVERY_MS = 300;
const BURST = 1_000;
const READY_WITHIN_MS = 20_000;
/** The gate at the end has no publisher any more. */
const FINAL_SILENCE_MS = 60_000;
/** The last of a client's generations that are presented. */
const PRESENTED = 4;

export interface RunOptions {
  readonly source: SourceName;
  /** When it ends: after a time, or after so many faults. */
  readonly length: { readonly seconds: number } | { readonly faults: number };
  readonly seed: number;
  /** What `buildCommit()` has compiled: every other gate, and every other start of the token server, is of that version. */
  readonly beside?: string | undefined;
  /** Where the ledger is written, as JSON lines. */
  readonly file?: string;
}

/** A client of the token server, as the driver knows it. */
interface ChaosClient {
  readonly id: string;
  /** Acknowledged, the newest last. */
  readonly generations: number[];
  /** Whether its newest token is ever presented: gates learn from it, so others show what comes from the log. */
  readonly isSilent: boolean;
  isChanging: boolean;
}

/** Runs processes under changes, requests and faults, then counts what must not have happened. */
export async function runChaos(options: RunOptions): Promise<{ counts: readonly Count[]; entries: readonly Entry[] }> {
  const { source, length, seed, beside, file } = options;
  const ledger = openLedger(file);
  const random = seeded(seed);
  // How many requests are sent depends on the machine, the faults must not.
  const faultRandom = seeded(seed + 1);
  const issuer = createTestIssuer();
  const trusted = { issuer: issuer.issuer, audience: issuer.audience, keys: issuer.options.keys };
  const stand = await startStand({ source, gateCount: GATES, trusted, ledger, beside });
  const agent = new Agent({ keepAlive: true });
  const tokens = new Map<string, string>();
  const sent = new Set<Promise<void>>();

  function tokenOf(clientId: string, generation: number): string {
    const key = `${clientId} ${generation}`;
    const token = tokens.get(key) ?? issuer.token({ clientId, generation, lifetimeSeconds: 7_200 });
    tokens.set(key, token);
    return token;
  }

  async function present({ child }: Resource, client: string, generation: number, final = false): Promise<void> {
    if (!child) return;
    const headers = { authorization: `Bearer ${tokenOf(client, generation)}` };
    const sentMs = Date.now();
    const { status } = await shoot({ url: `http://127.0.0.1:${child.port}/`, headers, agent });
    const receivedMs = Date.now();
    ledger.add({
      kind: 'request',
      process: child.name,
      client,
      generation,
      sentMs,
      receivedMs,
      status,
      ...(final && { final }),
    });
  }

  async function change(client: ChaosClient, path = `/clients/${client.id}/revoke`, body?: object): Promise<void> {
    const json = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const [sentMs, { id }] = [Date.now(), client];
    client.isChanging = true;
    try {
      const response = await fetch(stand.tokenServer.url + path, { method: 'POST', ...json });
      const { generation } = (await response.json()) as { generation: number };
      if (!response.ok) throw new Error(`${path} responded with ${response.status}`);
      ledger.add({ kind: 'change', client: id, sentMs, ack: { atMs: Date.now(), generation } });
      client.generations.push(generation);
    } catch {
      ledger.add({ kind: 'change', client: id, sentMs });
    } finally {
      client.isChanging = false;
    }
  }

  function presentAny(): void {
    const { id, generations, isSilent } = pick(clients, random);
    const newest = random() < 0.5 ? generations.slice(-1) : generations.slice(-PRESENTED);
    const known = isSilent ? generations.slice(-PRESENTED, -1) : newest;
    if (known.length === 0) return;
    const request = present(pick(stand.gates, random), id, pick(known, random));
    sent.add(request);
    void request.finally(() => sent.delete(request));
  }

  async function burst(): Promise<void> {
    for (let number = 1; number <= BURST; number++) {
      presentAny();
      // The wires are in this process.
      if (number % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(sent);
  }

  /** Nothing is presented to a new gate but tokens that it must refuse. What is published has survived the publisher. */
  async function askNewGate(): Promise<void> {
    if (stand.engine) await stand.tokenServer.kill();
    const gate = await stand.addGate('final', { maxSilenceMs: FINAL_SILENCE_MS });
    // One that does not get ready responds with 503, which counts as lost changes.
    await Promise.race([gate.child?.ready, new Promise((resolve) => setTimeout(resolve, READY_WITHIN_MS).unref())]);
    await Promise.all(clients.map(({ id, generations }) => present(gate, id, generations.at(-2) as number, true)));
  }

  const clients = Array.from({ length: CLIENTS }, (_, number): ChaosClient => ({
    id: `client-${number}`,
    generations: [],
    isSilent: number % 2 === 1,
    isChanging: false,
  }));
  const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

  try {
    for (const client of clients) {
      await change(client, '/clients', { client_id: client.id, scope: 'orders:read' });
      await change(client);
    }
    await eventually('the gates are ready', async () => {
      const statuses = stand.gates.map(({ child }) => shoot({ url: `http://127.0.0.1:${child?.port}/`, agent }));
      return (await Promise.all(statuses)).every(({ status }) => status === 401);
    });
    await Promise.all(stand.gates.map(async ({ child }) => child?.ready));

    const draw = drawFaults(stand, burst, faultRandom);
    const requests = setInterval(presentAny, REQUEST_EVERY_MS);
    const changes = setInterval(() => {
      const client = pick(clients, random);
      if (!client.isChanging) void change(client);
    }, CHANGE_EVERY_MS);
    const startedMs = Date.now();
    for (let faults = 0; ; faults++) {
      if ('faults' in length ? faults === length.faults : Date.now() - startedMs >= length.seconds * 1_000) break;
      // Half of the faults meet a system that is still recovering from the one before.
      await pause(faultRandom() < 0.5 ? faultRandom() * 2_000 : BOUNDS.recoveryMs + faultRandom() * 3_000);
      const { run, ...fault } = draw();
      const fromMs = Date.now();
      await run();
      ledger.add({ kind: 'fault', ...fault, fromMs, toMs: Date.now() });
    }
    await pause(BOUNDS.recoveryMs + 1_000);
    clearInterval(changes);
    await eventually('every change has a response', () => clients.every(({ isChanging }) => !isChanging));
    await pause(BOUNDS.healthyMs);
    clearInterval(requests);
    await Promise.all(sent);
    await askNewGate();
  } finally {
    agent.destroy();
    await stand.close();
  }
  return { counts: check(ledger.entries, BOUNDS), entries: ledger.entries };
}
