'use strict';
// What must hold in every test runner for an issuer that is given by its URL: its key set is fetched.
const assert = require('node:assert/strict');
const { once } = require('node:events');
const { createServer } = require('node:http');

exports.remoteCases = function remoteCases({ express, authenticate, requireScope, startTestIssuer }) {
  /** Status and code of a request with each token. */
  async function responses(gate, ...tokens) {
    const app = express();
    app.get('/v1/orders', gate, requireScope('orders:read'), (req, res) => res.json({ code: 'fine' }));
    const server = createServer(app);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      const url = `http://127.0.0.1:${server.address().port}/v1/orders`;
      const all = [];
      for (const token of tokens) {
        const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
        all.push(`${response.status} ${(await response.json()).code}`);
      }
      return all;
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  function recordingLogger() {
    const lines = [];
    const log = (fields, message) => lines.push({ message, ...fields });
    return { lines, info() {}, warn: log, error: log };
  }

  async function withIssuer(work) {
    const issuer = await startTestIssuer();
    try {
      await work(issuer);
    } finally {
      await issuer.close();
    }
  }

  function theGateOf(name, optionsOf) {
    return {
      name,
      run: () =>
        withIssuer(async (issuer) => {
          const logger = recordingLogger();
          const gate = authenticate({ ...optionsOf(issuer), logger });
          await gate.ready({ timeoutMs: 10_000 });
          const good = issuer.token({ scope: 'orders:read' });
          const got = await responses(gate, good, issuer.token({ scope: 'x' }), issuer.token({ foreignKey: true }));
          await gate.close();
          assert.deepEqual(got, ['200 fine', '403 insufficient_scope', '401 bad_signature']);
          assert.deepEqual(logger.lines, []);
        }),
    };
  }

  return [
    theGateOf('a gate with the options of startTestIssuer() fetches its keys', ({ options }) => options),
    theGateOf('a gate with an issuer and an audience fetches its keys', ({ options: { issuer, audience } }) => ({
      issuer,
      audience,
    })),
    {
      name: 'ready() ends after its time limit and says what is not available',
      run: () =>
        withIssuer(async (issuer) => {
          issuer.outage('503');
          const { issuer: url, audience } = issuer.options;
          const gate = authenticate({ issuer: url, audience, logger: recordingLogger() });
          await assert.rejects(gate.ready({ timeoutMs: 300 }), ({ message }) => {
            const what = `the gate is not ready after 300 ms: it has not read the keys of ${url}`;
            assert.equal(message, `${what} (${url}/.well-known/oauth-authorization-server responded with 503)`);
            return true;
          });
          assert.deepEqual(await responses(gate, issuer.token()), ['503 keys_unavailable']);
          await gate.close();
        }),
    },
  ];
};
