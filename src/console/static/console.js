// The console. Text from elsewhere becomes text nodes only; the policy of the page refuses anything else.

const $ = (selector, parent = document) => parent.querySelector(selector);
const MAX_SHOWN = 200;
const state = { clients: [], routes: [], scopes: null };
let requests = [];
let chosenRequest;
let chosenClient;

/** Makes an element. Members of `props` are set as properties, or as attributes where the name has a dash. */
function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.includes('-')) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

async function call(method, path, body, headers = {}) {
  const json = body && { 'Content-Type': 'application/json' };
  const response = await fetch(path, { method, headers: { ...json, ...headers }, body: body && JSON.stringify(body) });
  const result = response.status === 204 ? {} : await response.json();
  if (!response.ok) throw new Error(result.detail ?? result.error_description ?? `Status ${response.status}`);
  return result;
}

const announce = (text) => ($('#announcement').textContent = text);
const clock = (at) => new Date(at).toLocaleTimeString('en-GB');
const isNarrow = () => matchMedia('(max-width: 70rem)').matches;

// Tabs (the keyboard pattern of WAI-ARIA).

const tabs = [...document.querySelectorAll('[role=tab]')];

function showTab(name, { focus = false } = {}) {
  for (const tab of tabs) {
    const selected = tab.id === `tab-${name}`;
    tab.setAttribute('aria-selected', String(selected));
    tab.tabIndex = selected ? 0 : -1;
    $(`#${tab.getAttribute('aria-controls')}`).hidden = !selected;
  }
  if (focus && isNarrow()) {
    $(`#${name}`).scrollIntoView();
    $(`#${name}`).focus({ preventScroll: true });
  }
}

for (const [index, tab] of tabs.entries()) {
  tab.addEventListener('click', () => showTab(tab.id.slice(4)));
  tab.addEventListener('keydown', ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = tabs[(index + step + tabs.length) % tabs.length];
    showTab(next.id.slice(4));
    next.focus();
  });
}

// Requests.

const STATUS_KINDS = [
  [(status) => status === 401, '401'],
  [(status) => status === 403, '403'],
  [(status) => status >= 500, '5xx'],
  [(status) => status >= 400, '4xx'],
  [() => true, '2xx'],
];
const kindOf = (status) => STATUS_KINDS.find(([is]) => is(status))[1];
const pressed = (group) => $(`#${group} [aria-pressed=true]`).value;
const pill = (status) => el('span', { className: `pill s${kindOf(status)}` }, String(status));

function showRequests() {
  const [server, kind] = [pressed('servers'), pressed('statuses')];
  const shown = requests.filter((one) => (!server || one.server === server) && (!kind || kindOf(one.status) === kind));
  const focused = document.activeElement?.dataset?.request;
  $('#requests').replaceChildren(...shown.slice(0, MAX_SHOWN).map(requestRow));
  if (focused) $(`[data-request="${focused}"]`)?.focus({ preventScroll: true });
  const call =
    state.clients.length > 0
      ? `Call ${state.base_url}, or try a request in the documentation.`
      : 'Register a client first.';
  $('#no-requests').hidden = shown.length > 0;
  $('#no-requests').textContent =
    requests.length > 0 ? 'No request matches these filters.' : `No request so far. ${call}`;
}

function requestRow({ id, at, server, method, path, status, client_id, reason }) {
  const button = el(
    'button',
    { type: 'button', onclick: () => void chooseRequest(id), 'aria-pressed': String(id === chosenRequest) },
    pill(status),
    el('span', { className: 'what' }, el('b', {}, method), ` ${path}`),
    el('time', { dateTime: at }, clock(at)),
    el(
      'span',
      { className: 'who' },
      [client_id, reason].filter(Boolean).join(' · ') || (server === 'api' ? 'API' : 'token server'),
    ),
  );
  button.dataset.request = id;
  return el('li', {}, button);
}

async function chooseRequest(id) {
  chosenRequest = id;
  showRequests();
  try {
    const request = await call('GET', `/console/api/requests/${id}`);
    $('#why').replaceChildren(
      el('h3', {}, pill(request.status), ` ${request.method} `, el('code', {}, request.path)),
      facts({
        Server: request.server === 'api' ? 'API' : 'token server',
        Client: request.client_id,
        Time: clock(request.at),
        Duration: `${request.duration_ms} ms`,
        'Request id': request.request_id,
      }),
      ...explanation(request),
    );
  } catch {
    $('#why').replaceChildren(el('p', { className: 'empty' }, 'This request is no longer kept.'));
  }
  showTab('why', { focus: true });
}

function explanation({ reason, detail, why = { checks: [] } }) {
  const { got, expected, fix, checks, claims, verified } = why;
  return [
    reason && el('p', { className: 'reason' }, el('b', {}, reason), detail && el('span', {}, detail)),
    got && el('div', { className: 'compare' }, ...pair('Got', got), ...(expected ? pair('Expected', expected) : [])),
    fix && el('p', { className: 'fix' }, el('b', {}, 'What to do'), el('span', {}, fix)),
    !reason && !checks.length && el('p', { className: 'hint' }, 'No token was needed here, or none was checked.'),
    ...(checks.length > 0
      ? [
          el('h4', {}, 'Checks, in order'),
          el('ol', { className: 'checks' }, ...checks.map((check) => checkRow(check, detail))),
        ]
      : []),
    ...(claims ? [el('h4', {}, verified ? 'Claims' : 'Claims, not verified'), claimTable(claims)] : []),
  ].filter(Boolean);
}

const pair = (name, value) => [el('dl', {}, el('dt', {}, name), el('dd', {}, el('code', {}, value)))];

/** What the response has said is not repeated. */
function checkRow({ check, outcome, detail }, said) {
  return el(
    'li',
    { className: outcome.replace(' ', '-') },
    el('b', {}, check),
    el('span', {}, detail === undefined || detail === said ? outcome : detail),
  );
}

function facts(members) {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return el(
    'dl',
    { className: 'facts' },
    ...given.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
  );
}

function claimTable(claims) {
  return el(
    'table',
    { className: 'claims' },
    el(
      'tbody',
      {},
      ...Object.entries(claims).map(([name, value]) => {
        const shown = typeof value === 'string' ? value : JSON.stringify(value);
        const date = ['exp', 'iat', 'nbf'].includes(name)
          ? new Date(value * 1000)
          : name === 'generation'
            ? new Date(value)
            : undefined;
        const time =
          date && !Number.isNaN(date.getTime()) ? date.toISOString().replace('T', ' ').slice(0, 19) : undefined;
        return el(
          'tr',
          {},
          el('th', { scope: 'row' }, name),
          el('td', {}, el('code', {}, shown), time && el('small', {}, time)),
        );
      }),
    ),
  );
}

// Clients.

function showClients() {
  $('#no-clients').hidden = state.clients.length > 0;
  $('#clients').replaceChildren(
    ...state.clients.map(({ client_id, description, disabled, scope }) => {
      const pressedNow = String(client_id === chosenClient);
      const count = scope.split(' ').length;
      return el(
        'li',
        {},
        el(
          'button',
          { type: 'button', onclick: () => chooseClient(client_id), 'aria-pressed': pressedNow },
          el('b', {}, client_id),
          el('span', {}, description || 'no Description'),
          el('small', {}, disabled ? 'disabled' : `${count} ${count === 1 ? 'scope' : 'scopes'}`),
        ),
      );
    }),
  );
}

/** Clients whose last change is not in the generation source yet. */
const unpublished = new Set();

function notePublished(id, { published }) {
  if (published === false) unpublished.add(id);
  else if (published) unpublished.delete(id);
}

function chooseClient(id) {
  chosenClient = id;
  showClients();
  showClient();
  showTab('client', { focus: true });
}

function showClient() {
  const client = state.clients.find(({ client_id }) => client_id === chosenClient);
  if (!client) return;
  const { client_id, description, scope, disabled, version, timeline } = client;
  const path = `/clients/${encodeURIComponent(client_id)}`;
  const scopes = scopeFields(scope.split(' '));
  const error = el('p', { className: 'error', role: 'alert' });
  const input = el('input', { id: 'description', value: description, autocomplete: 'off' });

  async function change(method, url, body, done) {
    try {
      error.textContent = '';
      const result = await call(method, url, body, { 'If-Match': `"${version}"` });
      announce(done);
      notePublished(client_id, result);
      if (unpublished.has(client_id)) showClient();
      if (result.client_secret) showSecret(result.client_secret);
    } catch ({ message }) {
      error.textContent = message;
    }
  }
  const action = (label, ...args) => el('button', { type: 'button', onclick: () => void change(...args) }, label);

  const form = el(
    'form',
    {
      onsubmit: (event) => {
        event.preventDefault();
        void change('PATCH', path, { description: input.value, scope: scopes.read() }, `${client_id} saved`);
      },
    },
    el('label', { htmlFor: 'description' }, 'Description'),
    input,
    scopes.element,
    el('p', { className: 'hint' }, 'A changed Description or a removed scope discards every token issued before.'),
    error,
    el('div', { className: 'actions' }, el('button', { className: 'primary' }, 'Save')),
  );
  $('#client').replaceChildren(
    el('h3', {}, el('code', {}, client_id), disabled ? el('span', { className: 'pill s403' }, 'disabled') : undefined),
    unpublished.has(client_id)
      ? el('p', { className: 'error', role: 'status' }, 'The last change is not published yet: APIs learn of it later.')
      : undefined,
    form,
    el('h4', {}, 'Credential'),
    el(
      'div',
      { className: 'actions start' },
      action('Rotate secret', 'POST', `${path}/secrets`, {}, `${client_id} has a new secret`),
      action('Revoke tokens', 'POST', `${path}/revoke`, undefined, `the tokens of ${client_id} are revoked`),
      disabled
        ? action('Enable', 'PATCH', path, { disabled: false }, `${client_id} enabled`)
        : action('Disable', 'PATCH', path, { disabled: true }, `${client_id} disabled`),
    ),
    el('h4', {}, 'Generations'),
    el(
      'ol',
      { className: 'timeline' },
      ...timeline.map(({ generation, at, cause }) =>
        el('li', {}, el('b', {}, cause), el('time', { dateTime: at }, clock(at)), el('code', {}, String(generation))),
      ),
    ),
    el('h4', {}, 'Routes'),
    matrix(scope.split(' ')),
  );
}

const METHODS = ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'];

/** Routes by path and method: allowed, or the scope that is missing. */
function matrix(granted) {
  if (state.routes.length === 0) return el('p', { className: 'empty' }, 'The routes of this API cannot be read.');
  const methods = METHODS.filter((method) => state.routes.some((route) => route.method === method));
  const cell = (path, method) => {
    const route = state.routes.find((one) => one.path === path && one.method === method);
    if (!route) return el('td', {});
    const isAllowed = route.requires.some((set) => set.every((scope) => granted.includes(scope)));
    const needs = route.requires.map((set) => set.join(' and ')).join(' or ') || 'any token';
    const text = `${isAllowed ? 'allowed by' : 'needs'} ${needs}`;
    return el(
      'td',
      { title: text, className: isAllowed ? 'yes' : 'no' },
      el('span', { 'aria-hidden': 'true' }, isAllowed ? '✓' : '–'),
      el('span', { className: 'hidden' }, text),
    );
  };
  return el(
    'div',
    { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Routes and scopes' },
    el(
      'table',
      { className: 'matrix' },
      el(
        'thead',
        {},
        el(
          'tr',
          {},
          el('th', { scope: 'col' }, 'Path'),
          ...methods.map((method) => el('th', { scope: 'col' }, method)),
        ),
      ),
      el(
        'tbody',
        {},
        ...[...new Set(state.routes.map(({ path }) => path))].map((path) =>
          el('tr', {}, el('th', { scope: 'row' }, path), ...methods.map((method) => cell(path, method))),
        ),
      ),
    ),
  );
}

/** A checkbox for each scope, or a text field where any scope may be registered. */
function scopeFields(granted) {
  if (state.scopes === null) {
    const input = el('input', { value: granted.join(' '), autocomplete: 'off', required: true });
    return { element: el('label', {}, 'Scopes, separated by spaces', input), read: () => input.value.trim() };
  }
  const ordered = [...granted, ...state.scopes.filter((scope) => !granted.includes(scope))];
  const boxes = ordered.map((scope) =>
    el('input', { type: 'checkbox', value: scope, checked: granted.includes(scope) }),
  );
  const labels = boxes.map((box) => el('label', {}, box, box.value));
  const element = el('fieldset', {}, el('legend', {}, 'Scopes'), el('div', {}, ...labels));
  return {
    element,
    read: () =>
      boxes
        .filter(({ checked }) => checked)
        .map(({ value }) => value)
        .join(' '),
  };
}

// Dialogs.

const registration = $('#registration');
let newScopes;

$('#register').addEventListener('click', () => {
  newScopes = scopeFields([]);
  $('#new-scopes').replaceChildren(newScopes.element);
  $('.error', registration).textContent = '';
  $('form', registration).reset();
  registration.showModal();
});
$('[value=cancel]', registration).addEventListener('click', () => registration.close());
$('form', registration).addEventListener('submit', async (event) => {
  event.preventDefault();
  const [client_id, description] = [$('#new-id').value.trim(), $('#new-description').value];
  try {
    const registered = await call('POST', '/clients', { client_id, description, scope: newScopes.read() });
    notePublished(client_id, registered);
    registration.close();
    await load();
    chooseClient(client_id);
    showSecret(registered.client_secret);
  } catch ({ message }) {
    $('.error', registration).textContent = message;
  }
});

const secret = $('#secret');

function showSecret(text) {
  $('code', secret).textContent = text;
  secret.showModal();
}
secret.addEventListener('close', () => ($('code', secret).textContent = ''));
$('[value=done]', secret).addEventListener('click', () => secret.close());
$('[value=copy]', secret).addEventListener('click', async () => {
  await navigator.clipboard.writeText($('code', secret).textContent);
  announce('The secret is copied');
});

// The token inspector.

function routeList(routes) {
  const rows = routes.map((route) => el('li', {}, el('code', {}, route)));
  return el('details', {}, el('summary', {}, 'Routes that it may call'), el('ul', {}, ...rows));
}

$('#inspect').addEventListener('submit', async (event) => {
  event.preventDefault();
  const output = $('#inspection');
  try {
    const why = await call('POST', '/console/api/inspect', { token: $('#inspected').value });
    const failed = why.checks.find(({ outcome }) => outcome === 'failed');
    const headline = failed
      ? 'The API refuses this token'
      : `The API accepts this token, on ${why.routes.length} ${why.routes.length === 1 ? 'route' : 'routes'}`;
    output.replaceChildren(
      el('h3', { role: 'status' }, pill(why.status), ` ${headline}`),
      ...(why.routes.length > 0 ? [routeList(why.routes)] : []),
      ...explanation({ reason: failed?.reason, detail: failed?.detail, why }),
    );
  } catch ({ message }) {
    output.replaceChildren(el('p', { className: 'error', role: 'alert' }, message));
  }
});

// What changes by itself.

async function load() {
  const before = state.clients.find(({ client_id }) => client_id === chosenClient)?.version;
  Object.assign(state, await call('GET', '/console/api/state'));
  ({ requests } = await call('GET', '/console/api/requests'));
  $('#base-url').textContent = state.base_url;
  $('#auth-url').textContent = state.auth_url;
  $('#docs').parentElement.parentElement.hidden = state.docs_url === null;
  $('#docs').href = state.docs_url ?? '/';
  showClients();
  showRequests();
  if (before !== state.clients.find(({ client_id }) => client_id === chosenClient)?.version) showClient();
}

for (const group of document.querySelectorAll('.filter')) {
  group.addEventListener('click', ({ target }) => {
    if (target.tagName !== 'BUTTON') return;
    for (const button of group.children) button.setAttribute('aria-pressed', String(button === target));
    showRequests();
  });
}

function setConnection(text) {
  $('#connection').textContent = text;
  $('#connection').classList.toggle('live', text === 'Live');
}

let pending;
const events = new EventSource('/console/api/events');
events.addEventListener('open', () => {
  setConnection('Live');
  void load();
});
events.addEventListener('error', () => setConnection('Disconnected: is tillgate dev running?'));
events.addEventListener('clients', () => void load());
events.addEventListener('request', ({ data }) => {
  const request = JSON.parse(data);
  requests = [request, ...requests].slice(0, 500);
  // Many requests per second are drawn, and announced, together.
  pending ??= setTimeout(() => {
    pending = undefined;
    const [{ status, method, path, reason = '' }] = requests;
    showRequests();
    if (status >= 400) announce(`${status} ${method} ${path} ${reason}`);
  }, 100);
});
