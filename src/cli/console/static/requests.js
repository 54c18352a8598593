import { $, announce, call, clock, copy, el, kindOf, mayCall, pill, showTab, state, timeAgo, timeOf } from './page.js';

// The list of requests, and why one was refused.

const MAX_SHOWN = 200;
const MAX_TEXT = 20_000;
let chosenRequest;
/** Whether a person has chosen the request; until then it is the newest refusal. */
let isChosen = false;

const SEARCHED = ['method', 'path', 'status', 'client_id', 'reason', 'request_id'];
const pressed = (group) => $(`#${group} [aria-pressed=true]`).value;

/** A token that was issued as it should be is of no interest, most of the time. */
const isFoldable = ({ server, path, status }) => server === 'tokens' && path.endsWith('/connect/token') && status < 400;

/** Whether each word of the search is in a request. */
function isFound(request, words) {
  const texts = SEARCHED.map((name) => String(request[name] ?? '').toLowerCase());
  return words.every((word) => texts.some((text) => text.includes(word)));
}

function countIn(group, requests, valueOf) {
  for (const button of $(`#${group}`).children) {
    const count = requests.filter((one) => !button.value || valueOf(one) === button.value).length;
    button.dataset.label ??= button.textContent;
    button.replaceChildren(button.dataset.label, el('span', { className: 'count' }, ` ${count}`));
  }
}

export function showRequests() {
  const [server, kind] = [pressed('servers'), pressed('statuses')];
  const words = $('#search').value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = state.requests.filter((one) => isFound(one, words));
  countIn('servers', found, (one) => one.server);
  const ofServer = found.filter((one) => !server || one.server === server);
  const foldable = server ? [] : ofServer.filter(isFoldable);
  const isFolded = $('#folded').getAttribute('aria-pressed') === 'false';
  const listed = isFolded ? ofServer.filter((one) => !foldable.includes(one)) : ofServer;
  countIn('statuses', listed, (one) => kindOf(one.status));
  const shown = listed.filter((one) => !kind || kindOf(one.status) === kind);

  $('#folded').hidden = foldable.length === 0;
  $('#folded').textContent =
    `${foldable.length} token ${foldable.length === 1 ? 'request' : 'requests'}: ${isFolded ? 'show' : 'fold away'}`;
  const focused = document.activeElement?.dataset?.request;
  $('#requests').replaceChildren(...shown.slice(0, MAX_SHOWN).map(requestRow));
  if (focused) $(`[data-request="${focused}"]`)?.focus({ preventScroll: true });
  $('#clear').disabled = state.requests.length === 0;
  $('#no-requests').hidden = shown.length > 0;
  // Drawn again only when it changes: a button in it may have the focus.
  const emptyFor =
    state.requests.length > 0 ? 'filters' : JSON.stringify([state.base_url, state.command, state.clients.length]);
  if ($('#no-requests').dataset.for === emptyFor) return;
  $('#no-requests').dataset.for = emptyFor;
  $('#no-requests').replaceChildren(...(state.requests.length > 0 ? ['No request matches.'] : firstSteps()));
}

/** Lines to paste: a call that is accepted, and one that is refused. */
function firstSteps() {
  const [client, route] = firstCall();
  if (!client) return ['No request so far. Register a client, then call ', el('code', {}, state.base_url ?? ''), '.'];
  const accepted = `${state.command ?? 'npx @tillgate/cli'} call GET ${shown(route)} --as ${shown(client)}`;
  return [
    el('p', {}, 'No request so far. Paste a line into another terminal:'),
    line('Accepted', accepted),
    line('Refused: no token', `curl -i ${quoted(state.base_url + route)}`),
  ];
}

/** A client and a route without parameters that it may call. */
function firstCall() {
  for (const { client_id, scope, disabled } of state.clients) {
    const isCallable = (route) =>
      route.method === 'GET' && !/[{:*]/.test(route.path) && mayCall(route, scope.split(' '));
    const route = disabled ? undefined : state.routes.find(isCallable);
    if (route) return [client_id, route.path];
  }
  return [];
}

function line(label, text) {
  const onclick = () => void copy(text);
  const button = el('button', { type: 'button', 'aria-label': `Copy: ${label}`, onclick }, 'Copy');
  return el('div', { className: 'line' }, el('span', {}, label), el('code', {}, text), button);
}

/** A word of a shell. A terminal would act on a control character before the shell reads it. */
const quoted = (text) => `'${text.replace(/\p{Cc}/gu, '').replaceAll("'", String.raw`'\''`)}'`;

/** Plain words stay readable. */
const shown = (text) => (/^[\w./:-]+$/.test(text) ? text : quoted(text));

/** A request as a line of shell. It has no token: the line gets one, or names a variable. */
function curlOf({ server, method, path, client_id, reason }, body) {
  const isForm = server === 'tokens' && method === 'POST' && path.endsWith('/connect/token');
  const base = server === 'api' ? state.base_url : state.auth_url;
  const form = `-d grant_type=client_credentials -d ${quoted(`client_id=${client_id ?? ''}`)} -d client_secret="$SECRET" -d scope="$SCOPE"`;
  const token = client_id ? `$(${state.command ?? 'npx @tillgate/cli'} token ${quoted(client_id)})` : '$TOKEN';
  return [
    'curl -i',
    ...(method === 'GET' ? [] : [`-X ${quoted(method)}`]),
    quoted(base + path),
    ...(server === 'api' && reason !== 'missing_token' ? [`-H "Authorization: Bearer ${token}"`] : []),
    ...(body ? ["-H 'Content-Type: application/json'", `-d ${quoted(body)}`] : []),
    ...(isForm ? [form] : []),
  ].join(' ');
}

function durationOf(ms) {
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function requestRow({ id, at, server, method, path, status, duration_ms, client_id, reason }) {
  const who = [client_id, reason].filter(Boolean).join(' · ') || (server === 'api' ? 'API' : 'token server');
  const button = el(
    'button',
    { type: 'button', onclick: () => chooseRequest(id), 'aria-pressed': String(id === chosenRequest) },
    pill(status),
    el('span', { className: 'what' }, el('b', {}, method), ` ${path}`),
    timeAgo(at),
    el('span', { className: 'took' }, durationOf(duration_ms)),
    el('span', { className: 'who' }, who),
  );
  button.dataset.request = id;
  return el('li', {}, button);
}

function chooseRequest(id) {
  isChosen = true;
  void showRequest(id).then(() => showTab('why', { focus: true }));
}

export function chooseNewestRefusal() {
  const newest = state.requests.find(({ status }) => status === 401 || status === 403);
  if (!isChosen && newest && newest.id !== chosenRequest) void showRequest(newest.id);
}

async function showRequest(id) {
  chosenRequest = id;
  showRequests();
  const request = await call('GET', `/console/api/requests/${id}`).catch(() => undefined);
  if (chosenRequest !== id) return;
  const gone = el('p', { className: 'empty' }, 'This request is no longer kept.');
  $('#why').replaceChildren(...(request ? detailsOf(request) : [gone]));
}

function detailsOf(request) {
  return [
    el('h3', {}, pill(request.status), ` ${request.method} `, el('code', {}, request.path)),
    facts({
      Server: request.server === 'api' ? 'API' : 'token server',
      Client: request.client_id,
      Time: clock(request.at),
      Duration: durationOf(request.duration_ms),
      'Request id': request.request_id,
    }),
    ...actionsFor(request),
    ...explanation(request),
  ];
}

/** Copy as curl, and replay. A token is made anew for both; bodies and queries are not kept. */
function actionsFor(request) {
  const output = el('div', { className: 'replay' });
  const hasBody = !['GET', 'HEAD', 'DELETE'].includes(request.method);
  const body = el('textarea', { id: 'replay-body', rows: 2, value: '{}', spellcheck: false });
  const isWhole = !request.path.includes('[');

  async function replay() {
    send.disabled = true;
    try {
      const json = hasBody && body.value.trim() ? { body: JSON.parse(body.value) } : {};
      const { status, text } = await call('POST', `/console/api/requests/${request.id}/replay`, json);
      const comparison = request.status === status ? ' as before' : ` instead of ${request.status}`;
      output.replaceChildren(
        el('p', { role: 'status' }, pill(status), comparison),
        ...(text ? [el('pre', { tabIndex: 0 }, el('code', {}, indented(text.slice(0, MAX_TEXT))))] : []),
      );
    } catch ({ message }) {
      output.replaceChildren(el('p', { className: 'error', role: 'alert' }, message));
    }
    send.disabled = false;
  }

  const copyLine = () => void copy(curlOf(request, hasBody && request.server === 'api' ? body.value.trim() : ''));
  const send = el('button', { type: 'button', onclick: () => void replay() }, 'Replay');
  const isApi = request.server === 'api' && isWhole;
  return [
    el(
      'div',
      { className: 'actions start' },
      // Another beginning of the path would name another host.
      ...(request.path.startsWith('/') ? [el('button', { type: 'button', onclick: copyLine }, 'Copy as curl')] : []),
      ...(isApi ? [send] : []),
    ),
    ...(isApi && hasBody ? [el('label', { className: 'body' }, 'Body to send (it was not kept)', body)] : []),
    output,
  ];
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

/** Generations are times, in ms. */
const generationsAsTimes = (text) => text?.replace(/\b1\d{12}\b/g, (generation) => timeOf(Number(generation)));

/** The reason, as a link to the page that explains it, where there is one. */
function reasonLink(reason, type) {
  const name = el('b', {}, reason);
  return type ? el('a', { href: type, target: '_blank', rel: 'noreferrer', title: 'What it means' }, name) : name;
}

export function explanation({ reason, detail, type, why = { checks: [] } }) {
  const { fix, checks, claims, verified } = why;
  const [got, expected] =
    reason === 'superseded' ? [why.got, why.expected].map(generationsAsTimes) : [why.got, why.expected];
  return [
    reason && el('p', { className: 'reason' }, reasonLink(reason, type), detail && el('span', {}, detail)),
    got && el('div', { className: 'compare' }, ...pair('Got', got), ...(expected ? pair('Expected', expected) : [])),
    fix && el('p', { className: 'fix' }, el('b', {}, 'What to do'), el('span', {}, fix)),
    !reason && !checks.length && el('p', { className: 'hint' }, 'No token was needed here, or none was checked.'),
    checks.length > 0 && el('h4', {}, 'Checks, in order'),
    checks.length > 0 && el('ol', { className: 'checks' }, ...checks.map((check) => checkRow(check, detail))),
    claims && el('h4', {}, verified ? 'Claims' : 'Claims, not verified'),
    claims && claimTable(claims),
  ].filter(Boolean);
}

const pair = (name, value) => [el('dl', {}, el('dt', {}, name), el('dd', {}, el('code', {}, value)))];

/** What the response has said is not repeated. */
function checkRow({ check, outcome, detail }, said) {
  const shown = check === 'generation' ? generationsAsTimes(detail) : detail;
  const result = el('span', {}, detail === undefined || detail === said ? outcome : shown);
  return el('li', { className: outcome.replace(' ', '-') }, el('b', {}, check), result);
}

function facts(members) {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  const rows = given.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)));
  return el('dl', { className: 'facts' }, ...rows);
}

function claimTable(claims) {
  const rows = Object.entries(claims).map(([name, value]) => {
    const shown = typeof value === 'string' ? value : JSON.stringify(value);
    const time = timeInClaim(name, value);
    const cell = el('td', {}, el('code', {}, shown), time && el('small', {}, time));
    return el('tr', {}, el('th', { scope: 'row' }, name), cell);
  });
  return el('table', { className: 'claims' }, el('tbody', {}, ...rows));
}

function timeInClaim(name, value) {
  const ms = ['exp', 'iat', 'nbf'].includes(name) ? value * 1000 : name === 'generation' ? value : NaN;
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString().replace('T', ' ').slice(0, 19);
}

for (const group of document.querySelectorAll('.filter')) {
  group.addEventListener('click', ({ target }) => {
    const chosen = target.closest('button');
    if (!chosen) return;
    for (const button of group.children) button.setAttribute('aria-pressed', String(button === chosen));
    showRequests();
  });
}

$('#search').addEventListener('input', showRequests);
$('#clear').addEventListener('click', async () => {
  await call('DELETE', '/console/api/requests');
  isChosen = false;
  announce('The requests are cleared');
  $('#requests-heading').focus();
});
$('#folded').addEventListener('click', ({ currentTarget }) => {
  currentTarget.setAttribute('aria-pressed', String(currentTarget.getAttribute('aria-pressed') === 'false'));
  showRequests();
});
