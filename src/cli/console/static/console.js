// The console. Text from elsewhere becomes text nodes only; the policy of the page refuses anything else.

const $ = (selector, parent = document) => parent.querySelector(selector);
const MAX_SHOWN = 200;
const MAX_TEXT = 20_000;
const state = { clients: [], routes: [], scopes: null };
let requests = [];
let chosenRequest;
/** Whether a person has chosen the request; until then it is the newest refusal. */
let isChosen = false;
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

async function call(method, path, body) {
  const headers = body && { 'Content-Type': 'application/json' };
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const result = response.status === 204 ? {} : await response.json();
  if (!response.ok) throw new Error(result.detail ?? result.error_description ?? `Status ${response.status}`);
  return result;
}

const announce = (text) => ($('#announcement').textContent = text);
const clock = (at) => new Date(at).toLocaleTimeString('en-GB');

/** How long ago a time was; the hover shows the time itself. */
function ago(at) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(at)) / 1000));
  if (seconds < 5) return 'now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : new Date(at).toLocaleDateString('en-CA');
}
const timeAgo = (at, title = clock(at)) => el('time', { dateTime: at, title, className: 'ago' }, ago(at));
setInterval(() => {
  for (const time of document.querySelectorAll('time.ago')) time.textContent = ago(time.dateTime);
}, 5_000);

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
const SEARCHED = ['method', 'path', 'status', 'client_id', 'reason', 'request_id'];
const kindOf = (status) => STATUS_KINDS.find(([is]) => is(status))[1];
const pressed = (group) => $(`#${group} [aria-pressed=true]`).value;
const pill = (status) => el('span', { className: `pill s${kindOf(status)}` }, String(status));

/** A token that was issued as it should be is of no interest, most of the time. */
const isFoldable = ({ server, path, status }) => server === 'tokens' && path.endsWith('/connect/token') && status < 400;

/** Whether each word of the search is in a request. */
function isFound(request, words) {
  const text = SEARCHED.map((name) => request[name] ?? '')
    .join(' ')
    .toLowerCase();
  return words.every((word) => text.includes(word));
}

function countIn(group, requests, valueOf) {
  for (const button of $(`#${group}`).children) {
    const count = requests.filter((one) => !button.value || valueOf(one) === button.value).length;
    button.dataset.label ??= button.textContent;
    button.replaceChildren(button.dataset.label, el('span', { className: 'count' }, ` ${count}`));
  }
}

function showRequests() {
  const [server, kind] = [pressed('servers'), pressed('statuses')];
  const words = $('#search').value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = requests.filter((one) => isFound(one, words));
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
  $('#clear').disabled = requests.length === 0;
  $('#no-requests').hidden = shown.length > 0;
  // Drawn again only when it changes: a button in it may have the focus.
  const emptyFor =
    requests.length > 0 ? 'filters' : JSON.stringify([state.base_url, state.command, state.clients.length]);
  if ($('#no-requests').dataset.for === emptyFor) return;
  $('#no-requests').dataset.for = emptyFor;
  $('#no-requests').replaceChildren(...(requests.length > 0 ? ['No request matches.'] : firstSteps()));
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
    const granted = scope.split(' ');
    const route = state.routes.find(
      ({ method, path, requires }) =>
        method === 'GET' && !/[{:*]/.test(path) && requires.some((set) => set.every((one) => granted.includes(one))),
    );
    if (route && !disabled) return [client_id, route.path];
  }
  return [];
}

function line(label, text) {
  return el(
    'div',
    { className: 'line' },
    el('span', {}, label),
    el('code', {}, text),
    el('button', { type: 'button', 'aria-label': `Copy: ${label}`, onclick: () => void copy(text) }, 'Copy'),
  );
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce('Copied');
  } catch {
    announce('The browser did not allow this page to copy');
  }
}

/** A word of a shell. A terminal would act on a control character before the shell reads it. */
const quoted = (text) => `'${text.replace(/\p{Cc}/gu, '').replaceAll("'", String.raw`'\''`)}'`;

/** Plain words stay readable. */
const shown = (text) => (/^[\w./:-]+$/.test(text) ? text : quoted(text));

/** A request as a line of shell. It has no token: the line gets one, or names a variable. */
function curlOf({ server, method, path, client_id, reason }, body) {
  const isForm = server === 'tokens' && method === 'POST';
  const base = server === 'api' ? state.base_url : state.auth_url;
  const token = client_id ? `$(${state.command ?? 'npx @tillgate/cli'} token ${quoted(client_id)})` : '$TOKEN';
  return [
    'curl -i',
    ...(method === 'GET' ? [] : [`-X ${quoted(method)}`]),
    quoted(base + path),
    ...(server === 'api' && reason !== 'missing_token' ? [`-H "Authorization: Bearer ${token}"`] : []),
    ...(body ? ["-H 'Content-Type: application/json'", `-d ${quoted(body)}`] : []),
    ...(isForm && path.endsWith('/connect/token')
      ? [
          `-d grant_type=client_credentials -d ${quoted(`client_id=${client_id ?? ''}`)} -d client_secret="$SECRET" -d scope="$SCOPE"`,
        ]
      : []),
  ].join(' ');
}

function durationOf(ms) {
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function requestRow({ id, at, server, method, path, status, duration_ms, client_id, reason }) {
  const button = el(
    'button',
    { type: 'button', onclick: () => chooseRequest(id), 'aria-pressed': String(id === chosenRequest) },
    pill(status),
    el('span', { className: 'what' }, el('b', {}, method), ` ${path}`),
    timeAgo(at),
    el('span', { className: 'took' }, durationOf(duration_ms)),
    el(
      'span',
      { className: 'who' },
      [client_id, reason].filter(Boolean).join(' · ') || (server === 'api' ? 'API' : 'token server'),
    ),
  );
  button.dataset.request = id;
  return el('li', {}, button);
}

function chooseRequest(id) {
  isChosen = true;
  void showRequest(id).then(() => showTab('why', { focus: true }));
}

function chooseNewestRefusal() {
  const newest = requests.find(({ status }) => status === 401 || status === 403);
  if (!isChosen && newest && newest.id !== chosenRequest) void showRequest(newest.id);
}

async function showRequest(id) {
  chosenRequest = id;
  showRequests();
  try {
    const request = await call('GET', `/console/api/requests/${id}`);
    if (chosenRequest !== id) return;
    $('#why').replaceChildren(
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
    );
  } catch {
    if (chosenRequest !== id) return;
    $('#why').replaceChildren(el('p', { className: 'empty' }, 'This request is no longer kept.'));
  }
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
      output.replaceChildren(
        el(
          'p',
          { role: 'status' },
          pill(status),
          request.status === status ? ' as before' : ` instead of ${request.status}`,
        ),
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

function timeOf(generation) {
  const date = new Date(generation);
  if (!(generation > 1e12) || Number.isNaN(date.getTime())) return String(generation);
  const ms = String(date.getMilliseconds()).padStart(3, '0');
  const day = date.toDateString() === new Date().toDateString() ? '' : `${date.toLocaleDateString('en-CA')} `;
  return `${day}${clock(date)}.${ms}`;
}

/** The reason, as a link to the page that explains it, where there is one. */
function reasonLink(reason, type) {
  const name = el('b', {}, reason);
  return type ? el('a', { href: type, target: '_blank', rel: 'noreferrer', title: 'What it means' }, name) : name;
}

function explanation({ reason, detail, type, why = { checks: [] } }) {
  const { fix, checks, claims, verified } = why;
  const [got, expected] =
    reason === 'superseded' ? [why.got, why.expected].map(generationsAsTimes) : [why.got, why.expected];
  return [
    reason && el('p', { className: 'reason' }, reasonLink(reason, type), detail && el('span', {}, detail)),
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
  const shown = check === 'generation' ? generationsAsTimes(detail) : detail;
  return el(
    'li',
    { className: outcome.replace(' ', '-') },
    el('b', {}, check),
    el('span', {}, detail === undefined || detail === said ? outcome : shown),
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
    ...state.clients.map(({ client_id, description, disabled, scope, out }) => {
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
          el(
            'small',
            {},
            disabled ? 'disabled' : out ? 'no new token' : `${count} ${count === 1 ? 'scope' : 'scopes'}`,
          ),
        ),
      );
    }),
  );
}

const NOT_FETCHED = 'has not fetched a new token since the change';
const OUT = 'It gets 401 until it does, or until its token expires. How a caller does so by itself: docs/callers.md.';

/** Clients whose last change is not in the generation source yet. */
const unpublished = new Set();
const NOT_PUBLISHED = 'The last change is not published yet: APIs learn of it later.';
const warningOf = (id) =>
  /[+%:]/.test(id)
    ? 'Many client libraries cannot send + % : in a client id by HTTP Basic: they do not form-encode it.'
    : '';

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
  const { client_id, description, scope, disabled, out, timeline } = client;
  const path = `/clients/${encodeURIComponent(client_id)}`;
  const scopes = scopeFields(scope.split(' '));
  const error = el('p', { className: 'error', role: 'alert' });
  const input = el('input', { id: 'description', value: description, autocomplete: 'off' });

  async function change(method, url, body, done) {
    try {
      error.textContent = '';
      const result = await call(method, url, body);
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
  const warnings = [unpublished.has(client_id) && NOT_PUBLISHED, warningOf(client_id)].filter(Boolean);
  const notices = warnings.map((text) => el('p', { className: 'error', role: 'status' }, text));
  const outTexts = [el('b', {}, `${client_id} ${NOT_FETCHED}`), el('span', {}, OUT)];
  if (out) notices.push(el('p', { className: 'fix', role: 'status' }, ...outTexts));
  $('#client').replaceChildren(
    el('h3', {}, el('code', {}, client_id), disabled ? el('span', { className: 'pill s403' }, 'disabled') : undefined),
    ...notices,
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
        el('li', {}, el('b', {}, cause), timeAgo(at, `${timeOf(generation)}, generation ${generation}`)),
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
  $('.error', registration).textContent = $('.hint', registration).textContent = '';
  $('form', registration).reset();
  registration.showModal();
});
$('#new-id').addEventListener('input', ({ target }) => {
  $('.hint', registration).textContent = warningOf(target.value);
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
  await copy($('code', secret).textContent);
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

let loaded = Promise.resolve();
/** One after the other: an older state never replaces a newer one. */
const load = () => (loaded = loaded.then(loadNow, loadNow));

async function loadNow() {
  const shown = () => JSON.stringify(state.clients.find(({ client_id }) => client_id === chosenClient));
  const before = shown();
  Object.assign(state, await call('GET', '/console/api/state'));
  const { requests: listed } = await call('GET', '/console/api/requests');
  // The stream may have brought newer ones meanwhile.
  const newest = listed[0]?.id ?? 0;
  requests = [...requests.filter(({ id }) => id > newest), ...listed];
  $('#base-url').textContent = state.base_url;
  $('#auth-url').textContent = state.auth_url;
  $('#docs').parentElement.parentElement.hidden = state.docs_url === null;
  $('#docs').href = state.docs_url ?? '/';
  showClients();
  showRequests();
  chooseNewestRefusal();
  if (before !== shown()) showClient();
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

function setConnection(text) {
  $('#connection').textContent = text;
  $('#connection').classList.toggle('live', text === 'Live');
}

let pending;
const events = new EventSource('/console/api/events');
events.addEventListener('open', () => {
  setConnection('Live');
  // It may be another process, which counts from 1.
  requests = [];
  void load();
});
events.addEventListener('error', () => setConnection('Disconnected: is tillgate dev running?'));
events.addEventListener('clients', () => void load());
events.addEventListener('cleared', () => {
  requests = [];
  void load();
});
events.addEventListener('request', ({ data }) => {
  const request = JSON.parse(data);
  requests = [request, ...requests].slice(0, 500);
  // Many requests per second are drawn, and announced, together.
  pending ??= setTimeout(() => {
    pending = undefined;
    showRequests();
    chooseNewestRefusal();
    // The requests may have been cleared meanwhile.
    const { status, method, path, reason = '' } = requests[0] ?? {};
    if (status >= 400) announce(`${status} ${method} ${path} ${reason}`);
  }, 100);
});
