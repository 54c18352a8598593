'use strict';
const { connect } = require('@nats-io/transport-node');
const { DeliverPolicy, JetStreamApiCodes, jetstream, jetstreamManager } = require('@nats-io/jetstream');
const {
  describeFailure,
  isSameMark,
  readersOf,
  requireChange,
  requireFormat,
  SourceError,
} = require('tillgate/generations');

const BATCH = 200;
/** The shortest wait for a message that NATS allows, in ms. */
const SHORTEST_WAIT_MS = 1_000;

/**
 * A generation source in a JetStream stream with two subjects: `<name>.changes`, to which anyone may append, and
 * `<name>.units`, which the publisher alone writes. A unit is one message, with its changes and its mark, so that it is atomic. JetStream
 * compares the sequence of the subject's last message when it stores it, so that a unit takes place only after the expected one.
 *
 * @param {{ servers: string, name?: string, keptMs?: number }} options
 * @returns {import('tillgate/generations').GenerationSource}
 */
function natsGenerations({ servers, name = 'tillgate', keptMs = 90_000_000 }) {
  const subjects = { changes: `${name}.changes`, units: `${name}.units` };
  const readers = readersOf(schedule, reader);
  let closed = false;
  let opening;

  async function open() {
    if (closed) throw new SourceError('NATS: the source is closed');
    opening ??= (async () => {
      const connection = await connect({ servers, maxReconnectAttempts: -1 });
      const manager = await jetstreamManager(connection);
      await manager.streams.add({ name, subjects: Object.values(subjects), max_age: keptMs * 1e6 });
      return { connection, manager, client: jetstream(connection) };
    })().catch((error) => {
      opening = undefined;
      throw error;
    });
    return opening;
  }

  /** The last unit, or `undefined`. */
  async function lastUnit(manager) {
    const message = await manager.streams.getMessage(name, { last_by_subj: subjects.units });
    return message ? { sequence: message.seq, mark: markOf(message.json()) } : undefined;
  }

  async function append(changes, unit) {
    for (const change of changes) requireChange(change, Date.now());
    return store(changes, unit).catch((error) => Promise.reject(failure(error)));
  }

  async function store(changes, unit) {
    const { client, manager } = await open();
    if (!unit) return void (await client.publish(subjects.changes, JSON.stringify({ changes })));
    const last = await lastUnit(manager);
    if (!isSameMark(last?.mark, unit.expected)) return last?.mark;
    try {
      const expect = { lastSubjectSequence: last?.sequence ?? 0 };
      await client.publish(subjects.units, JSON.stringify({ changes, mark: unit.mark }), { expect });
      return unit.mark;
    } catch (error) {
      if (error.code !== JetStreamApiCodes.StreamWrongLastSequence) throw error;
      return (await lastUnit(manager))?.mark;
    }
  }

  function reader() {
    let [sequence, isOpen] = [0, true];
    let history, epoch, consumer, waiting;
    let isNext = false;

    async function read(waitMs) {
      const { client, manager } = await open();
      const { state, created } = await manager.streams.info(name);
      // A stream that was made anew, or that went back, has other messages under the same sequences.
      if (created !== history || state.last_seq < sequence) [sequence, consumer] = [0, undefined];
      history = created;
      // Messages that are too old, or were purged, are not delivered any more.
      sequence = Math.max(sequence, state.first_seq - 1);
      consumer ??= await client.consumers.get(name, {
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: sequence + 1,
      });
      const batch = { changes: [], mark: undefined, end: false };
      while (isOpen && batch.changes.length < BATCH && sequence < state.last_seq) await take(SHORTEST_WAIT_MS, batch);
      if (batch.changes.length === 0 && waitMs > 0 && isOpen) await take(Math.max(SHORTEST_WAIT_MS, waitMs), batch);
      const mark = batch.mark;
      batch.end = sequence >= state.last_seq;
      isNext ||= mark !== undefined && epoch !== undefined && mark.epoch !== epoch;
      epoch = mark?.epoch ?? epoch;
      // Another epoch: it finishes its pass, and then does another one, however often a publisher restarts.
      if (isNext) batch.mark = undefined;
      if (isNext && batch.end) [sequence, consumer, isNext] = [0, undefined, false];
      return batch;
    }

    async function take(expires, batch) {
      waiting = await consumer.fetch({ max_messages: 1, expires });
      if (!isOpen) waiting.stop();
      for await (const message of waiting) {
        const unit = message.json();
        batch.mark = markOf(unit) ?? batch.mark;
        batch.changes.push(...unit.changes);
        sequence = message.seq;
      }
    }

    function close() {
      isOpen = false;
      waiting?.stop();
    }

    return {
      async next(waitMs) {
        const before = [sequence, history];
        try {
          return await read(waitMs);
        } catch (error) {
          // What this call has read is in no batch: the next one reads it again.
          [sequence, history] = before;
          consumer = undefined;
          throw failure(error);
        }
      },
      close,
    };
  }

  async function close() {
    closed = true;
    readers.close();
    await (await opening?.catch(() => undefined))?.connection.close();
  }

  return { mark: true, reader: readers.reader, append, close };
}

/** The mark of a unit; a later version of Tillgate may have written another format. */
function markOf({ mark }) {
  requireFormat(mark?.format);
  return mark;
}

function schedule(task, delayMs) {
  const timeout = setTimeout(task, delayMs).unref();
  return { cancel: () => clearTimeout(timeout) };
}

/** Without the message of the client, which can name its servers. */
function failure(cause) {
  return cause instanceof SourceError ? cause : new SourceError(`NATS: ${describeFailure(cause)}`, { cause });
}

module.exports = { natsGenerations };
