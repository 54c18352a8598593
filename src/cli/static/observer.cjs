// `tillgate dev` preloads this into the command that it starts: the console then shows the requests of the app, and why they
// are refused. It changes no response, and reports to the token server on this machine only. Preloaded by --require: --import
// would let Node load the command as an ES module, without the hooks of ts-node and the like.
'use strict';
const { subscribe } = require('node:diagnostics_channel');

const CONSOLE = `${process.env.TILLGATE_AUTH_URL}/console/api/requests`;
/** Bodies of refusals are smaller. */
const MAX_BODY = 16_384;

const decisions = new WeakMap();

subscribe('tillgate:decision', (decision) => decisions.set(decision.request, decision));

subscribe('http.server.request.start', ({ request, response }) => {
  // Routers change the URL.
  const { method, url: path } = request;
  const startedMs = performance.now();
  let body;
  const { end } = response;
  response.end = function observeEnd(...args) {
    const [chunk] = args;
    const isText = typeof chunk === 'string' || Buffer.isBuffer(chunk);
    if (response.statusCode >= 400 && isText && chunk.length <= MAX_BODY) body = String(chunk);
    return end.apply(this, args);
  };
  response.once('close', () => {
    const decision = decisions.get(request);
    const entry = {
      method,
      path,
      status: response.statusCode,
      duration_ms: performance.now() - startedMs,
      request_id: response.getHeader('x-request-id'),
      body,
      decision: decision && describe(decision, request),
    };
    report(entry).catch(() => undefined);
  });
});

function describe({ outcome, reason, error, auth, clientId }, { headers }) {
  // Without the signature: nobody can use what is sent.
  const [, token] = /^(?:Bearer|DPoP) +([\w-]+\.[\w-]+)\.[\w-]*$/i.exec(headers.authorization ?? '') ?? [];
  return {
    outcome,
    reason,
    detail: error?.privateDetail,
    unverified: error?.cause?.reason === 'unknown_key',
    required: error?.requiredScopes,
    granted: auth?.scopes,
    client_id: clientId,
    token,
  };
}

async function report(entry) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(CONSOLE, { method: 'POST', headers, body: JSON.stringify(entry) });
  await response.arrayBuffer();
}
