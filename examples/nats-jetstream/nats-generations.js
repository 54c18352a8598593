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
  const stream = new Stream(servers, name, keptMs);
  const readers = readersOf(schedule, () => new Reader(stream));
  return {
    mark: true,
    reader: readers.reader,
    async append(changes, unit) {
      for (const change of changes) requireChange(change, Date.now());
      return stream.store(changes, unit).catch((error) => Promise.reject(failure(error)));
    },
    async close() {
      const closed = stream.close();
      readers.close();
      await closed;
    },
  };
}

/** The stream, and one connection to it, opened on its first use. */
class Stream {
  #servers;
  #keptMs;
  #subjects;
  #isClosed = false;
  #opening;

  constructor(servers, name, keptMs) {
    this.#servers = servers;
    this.name = name;
    this.#keptMs = keptMs;
    this.#subjects = { changes: `${name}.changes`, units: `${name}.units` };
  }

  async open() {
    if (this.#isClosed) throw new SourceError('NATS: the source is closed');
    this.#opening ??= this.#connect().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async store(changes, unit) {
    const { client, manager } = await this.open();
    if (!unit) return void (await client.publish(this.#subjects.changes, JSON.stringify({ changes })));
    const last = await this.#lastUnit(manager);
    if (!isSameMark(last?.mark, unit.expected)) return last?.mark;
    try {
      const expect = { lastSubjectSequence: last?.sequence ?? 0 };
      await client.publish(this.#subjects.units, JSON.stringify({ changes, mark: unit.mark }), { expect });
      return unit.mark;
    } catch (error) {
      if (error.code !== JetStreamApiCodes.StreamWrongLastSequence) throw error;
      return (await this.#lastUnit(manager))?.mark;
    }
  }

  async close() {
    this.#isClosed = true;
    await (await this.#opening?.catch(() => undefined))?.connection.close();
  }

  async #connect() {
    const connection = await connect({ servers: this.#servers, maxReconnectAttempts: -1 });
    const manager = await jetstreamManager(connection);
    const subjects = Object.values(this.#subjects);
    await manager.streams.add({ name: this.name, subjects, max_age: this.#keptMs * 1e6 });
    return { connection, manager, client: jetstream(connection) };
  }

  /** The last unit, or `undefined`. */
  async #lastUnit(manager) {
    const message = await manager.streams.getMessage(this.name, { last_by_subj: this.#subjects.units });
    return message ? { sequence: message.seq, mark: markOf(message.json()) } : undefined;
  }
}

/** Reads a stream from its oldest message on. */
class Reader {
  #stream;
  /** Of the message that was read last. */
  #sequence = 0;
  /** When the stream was created that has it. */
  #history;
  #epoch;
  #consumer;
  #waiting;
  /** Whether another epoch has begun: after this pass the stream is read again from its start. */
  #isNext = false;
  #isOpen = true;

  constructor(stream) {
    this.#stream = stream;
  }

  async next(waitMs) {
    const [sequence, history] = [this.#sequence, this.#history];
    try {
      return await this.#read(waitMs);
    } catch (error) {
      // What this call has read is in no batch: the next one reads it again.
      this.#sequence = sequence;
      this.#history = history;
      this.#consumer = undefined;
      throw failure(error);
    }
  }

  close() {
    this.#isOpen = false;
    this.#waiting?.stop();
  }

  async #read(waitMs) {
    const last = await this.#openConsumer();
    const batch = { changes: [], mark: undefined, end: false };
    while (this.#isOpen && batch.changes.length < BATCH && this.#sequence < last) {
      await this.#take(SHORTEST_WAIT_MS, batch);
    }
    if (batch.changes.length === 0 && waitMs > 0 && this.#isOpen) {
      await this.#take(Math.max(SHORTEST_WAIT_MS, waitMs), batch);
    }
    const mark = batch.mark;
    batch.end = this.#sequence >= last;
    this.#isNext ||= mark !== undefined && this.#epoch !== undefined && mark.epoch !== this.#epoch;
    this.#epoch = mark?.epoch ?? this.#epoch;
    // Another epoch: it finishes its pass, and then does another one, however often a publisher restarts.
    if (this.#isNext) batch.mark = undefined;
    if (this.#isNext && batch.end) {
      this.#startAgain();
      this.#isNext = false;
    }
    return batch;
  }

  /** Returns the sequence of the last message. */
  async #openConsumer() {
    const { client, manager } = await this.#stream.open();
    const { state, created } = await manager.streams.info(this.#stream.name);
    // A stream that was made anew, or that went back, has other messages under the same sequences.
    if (created !== this.#history || state.last_seq < this.#sequence) this.#startAgain();
    this.#history = created;
    // Messages that are too old, or were purged, are not delivered any more.
    this.#sequence = Math.max(this.#sequence, state.first_seq - 1);
    this.#consumer ??= await client.consumers.get(this.#stream.name, {
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: this.#sequence + 1,
    });
    return state.last_seq;
  }

  #startAgain() {
    this.#sequence = 0;
    this.#consumer = undefined;
  }

  async #take(expires, batch) {
    this.#waiting = await this.#consumer.fetch({ max_messages: 1, expires });
    if (!this.#isOpen) this.#waiting.stop();
    for await (const message of this.#waiting) {
      const unit = message.json();
      batch.mark = markOf(unit) ?? batch.mark;
      batch.changes.push(...unit.changes);
      this.#sequence = message.seq;
    }
  }
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
