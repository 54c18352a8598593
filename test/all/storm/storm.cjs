'use strict';
// Connections that clients reset at random moments. Also copied into the projects in which recipes and examples run.
const { connect } = require('node:net');

const AT_ONCE = 60;
/** Longer than most decisions take. */
const MAX_PAUSE_MS = 60;
/** A server that sends nothing is not waited for longer than this. */
const LONGEST_MS = 300;

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** The bytes of a request: `rawRequest('GET', '/orders', { Upgrade: 'websocket' }, 'body')`. */
function rawRequest(method, path, headers = {}, body = '') {
  const sent = { Host: 'localhost', ...(body && { 'Content-Length': Buffer.byteLength(body) }), ...headers };
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

/** The headers that ask for a WebSocket. */
const WEBSOCKET = {
  ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** What one client does before it resets its connection. */
function planOf(requests, random) {
  const request = requests[Math.floor(random() * requests.length)];
  const moment = ['head', 'request', 'response'][Math.floor(random() * 3)];
  const sent = moment === 'head' ? request.slice(0, Math.ceil(random() * request.length)) : request;
  return { moment, sent, pauseMs: Math.floor(random() * MAX_PAUSE_MS), garbage: random() < 0.5 };
}

function carryOut(port, { moment, sent, pauseMs, garbage }) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const reset = () => socket.resetAndDestroy();
    const tooLong = setTimeout(reset, LONGEST_MS);
    socket.once('close', () => {
      clearTimeout(tooLong);
      resolve();
    });
    socket.on('error', () => {});
    socket.once('connect', () => {
      socket.write(sent, () => moment !== 'response' && setTimeout(reset, pauseMs));
    });
    socket.once('data', () => {
      if (garbage) socket.write(Buffer.from([0xff, 0x00, 0x7f, 0x82]));
      if (moment === 'response') setTimeout(reset, pauseMs);
    });
  });
}

/**
 * Opens connections to a server of 127.0.0.1, sends one of the requests on each, and resets it: in its head, while the
 * server decides, or in the response. What is sent, and when, follows from the seed.
 */
async function storm({ port, connections, requests, seed }) {
  const random = randomFrom(seed);
  const plans = Array.from({ length: connections }, () => planOf(requests, random));
  async function work() {
    for (let plan = plans.pop(); plan; plan = plans.pop()) await carryOut(port, plan);
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

module.exports = { rawRequest, storm, WEBSOCKET };
