'use strict';
const { connect } = require('@nats-io/transport-node');
const { DeliverPolicy, JetStreamApiCodes, jetstream, jetstreamManager } = require('@nats-io/jetstream');

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
  const readers = new Set();
  let closed = false;
  let opening;

  async function open() {
    if (closed) throw new Error('the source is closed');
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
    return message ? { sequence: message.seq, mark: message.json().mark } : undefined;
  }

  async function append(changes, unit) {
    changes.forEach(requireChange);
    const { client, manager } = await open();
    if (!unit) return void (await client.publish(subjects.changes, JSON.stringify({ changes })));
    const last = await lastUnit(manager);
    if (!isSame(last?.mark, unit.expected)) return last?.mark;
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

    async function next(waitMs) {
      const { client, manager } = await open();
      if (!isOpen) throw new Error('the reader is closed');
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
        const { changes, mark } = message.json();
        sequence = message.seq;
        batch.changes.push(...changes);
        batch.mark = mark ?? batch.mark;
      }
    }

    function close() {
      isOpen = false;
      readers.delete(self);
      waiting?.stop();
    }

    const self = { next, close };
    readers.add(self);
    return self;
  }

  async function close() {
    closed = true;
    for (const one of readers) one.close();
    await (await opening?.catch(() => undefined))?.connection.close();
  }

  return { mark: true, reader, append, close };
}

function isSame(one, other) {
  return one?.epoch === other?.epoch && one?.unit === other?.unit;
}

function requireChange([clientId, generation]) {
  const isText =
    typeof clientId === 'string' && clientId.length > 0 && clientId.length <= 2_048 && clientId.isWellFormed();
  const isPast = generation < 1e12 || generation <= Date.now() + 60_000;
  if (isText && !clientId.includes('\0') && Number.isSafeInteger(generation) && generation >= 0 && isPast) return;
  throw new TypeError('expected a change: [client id, generation that is not in the future]');
}

module.exports = { natsGenerations };
