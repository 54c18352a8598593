import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { basename } from 'node:path';
import { collect, started, stop } from './process';

/** A script in a process of its own: for software that does not load in Jest, or must not share our process. */
export interface Script<Ready> {
  /** What the script said when it was ready. */
  readonly ready: Ready;
  /** Asks the script to do something. Rejects with the script's own error when that fails. */
  ask<Reply>(question: object): Promise<Reply>;
  stop(): Promise<void>;
}

interface Message {
  readonly id?: number;
  readonly ready?: unknown;
  readonly reply?: unknown;
  readonly error?: string;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Id under which the first message is waited for: no question was asked for it. */
const READY = 0;

/**
 * Starts a script that speaks through `reply-to-parent.mjs`, and waits for its first message.
 *
 * @param argument - what the script finds as JSON in its first argument
 * @throws Error with what the script wrote to stderr, when it ends before that
 */
export async function startScript<Ready>(path: string, argument: object = {}): Promise<Script<Ready>> {
  const child = fork(path, [JSON.stringify(argument)], { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const wait = conversation(child, basename(path));
  const ready = (await started(child, wait(READY))) as Ready;
  return { ready, ask: asker(child, wait), stop: () => stop(child) };
}

function asker(child: ChildProcess, wait: (id: number) => Promise<unknown>): Script<unknown>['ask'] {
  let lastId = READY;
  return async function ask<Reply>(question: object): Promise<Reply> {
    const id = ++lastId;
    const reply = wait(id);
    // What cannot be sent any more needs no handling of its own: the end of the child fails the question.
    child.send({ id, question }, () => {});
    return (await reply) as Reply;
  };
}

/** Passes each message of the child to its waiter; when the child ends, every waiter is rejected. */
function conversation(child: ChildProcess, name: string): (id: number) => Promise<unknown> {
  const stderr = collect(child.stderr);
  const waiting = new Map<number, Waiting>();
  let ended: Error | undefined;

  child.on('message', ({ id = READY, ready, reply, error }: Message) => {
    const waiter = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) waiter?.resolve(reply ?? ready);
    else waiter?.reject(new Error(`${name}: ${error}`));
  });
  child.once('close', (code, signal) => {
    ended = new Error(`${name} ended (${signal ?? `exit ${code}`}). It wrote:\n${stderr()}`);
    for (const waiter of waiting.values()) waiter.reject(ended);
  });
  return (id) =>
    new Promise((resolve, reject) => {
      if (ended) reject(ended);
      else waiting.set(id, { resolve, reject });
    });
}
