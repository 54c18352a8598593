// `tillgate dev` preloads this into the command that it starts: the console then shows the requests of the app, and why they
// are refused. It changes no response, and reports to a console on this machine or to none. Preloaded by --require: --import
// would let Node load the command as an ES module, without the hooks of ts-node and the like.
'use strict';
const { subscribe } = require('node:diagnostics_channel');
const { Agent, request: send } = require('node:http');

const REPORTS = '/console/api/requests';
/** Bodies of refusals are smaller. */
const MAX_BODY = 16_384;

const decisions = new WeakMap();
/** Not the global one: a proxy of the environment can be set for that. */
const agent = new Agent({ keepAlive: true });

// Not a TILLGATE_ name: those configure the app, and may name an authorization server on another machine.
const consoleUrl = urlOnThisMachine(process.env.CONSOLE_OF_TILLGATE_DEV);
if (consoleUrl) observe();

/** The whole host decides: 127.0.0.1.example.com merely begins like one of this machine. */
function urlOnThisMachine(text) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHere = url?.protocol === 'http:' && /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
  return isHere ? new URL(REPORTS, url) : undefined;
}

function observe() {
  subscribe('tillgate:decision', (decision) => decisions.set(decision.request, decision));
  subscribe('http.server.request.start', observeRequest);
}

function observeRequest({ request, response }) {
  // Routers change the URL.
  const { method, url: path } = request;
  // A report is not reported again, should the console be in an observed process.
  if (path === REPORTS) return;
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
    report(entry).catch(ignore);
  });
}

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

/** No report, and no failure of one, may end the process of the app. */
async function report(entry) {
  const headers = { 'content-type': 'application/json' };
  const sent = send(consoleUrl, { method: 'POST', headers, agent }, (response) =>
    response.on('error', ignore).resume(),
  );
  sent.on('error', ignore).end(JSON.stringify(entry));
}

function ignore() {}
