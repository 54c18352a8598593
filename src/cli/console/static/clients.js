import { $, announce, call, copy, el, mayCall, showTab, state, timeAgo, timeOf } from './page.js';

// The clients, what one may call, and its secret.

let chosenId;

export function showClients() {
  $('#no-clients').hidden = state.clients.length > 0;
  $('#clients').replaceChildren(...state.clients.map(clientRow));
}

function clientRow({ client_id, description, disabled, scope, out }) {
  const count = scope.split(' ').length;
  const note = disabled ? 'disabled' : out ? 'no new token' : `${count} ${count === 1 ? 'scope' : 'scopes'}`;
  const texts = [el('b', {}, client_id), el('span', {}, description || 'no Description'), el('small', {}, note)];
  const onclick = () => chooseClient(client_id);
  const button = { type: 'button', onclick, 'aria-pressed': String(client_id === chosenId) };
  return el('li', {}, el('button', button, ...texts));
}

const NOT_FETCHED = 'has not fetched a new token since the change';
const OUT = 'It gets 401 until it does, or until its token expires. How a caller does so by itself: docs/callers.md.';

/** Clients whose last change is not in the generation source yet. */
const unpublished = new Set();
const NOT_PUBLISHED = 'The last change is not published yet: APIs learn of it later.';
export const warningOf = (id) =>
  /[+%:]/.test(id)
    ? 'Many client libraries cannot send + % : in a client id by HTTP Basic: they do not form-encode it.'
    : '';

export function notePublished(id, { published }) {
  if (published === false) unpublished.add(id);
  else if (published) unpublished.delete(id);
}

export function chooseClient(id) {
  chosenId = id;
  showClients();
  showClient();
  showTab('client', { focus: true });
}

export const chosenClient = () => state.clients.find(({ client_id }) => client_id === chosenId);

export function showClient() {
  const client = chosenClient();
  if (!client) return;
  const { client_id, scope, disabled, timeline } = client;
  const error = el('p', { className: 'error', role: 'alert' });
  const changes = timeline.map(({ generation, at, cause }) =>
    el('li', {}, el('b', {}, cause), timeAgo(at, `${timeOf(generation)}, generation ${generation}`)),
  );

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

  $('#client').replaceChildren(
    el('h3', {}, el('code', {}, client_id), disabled ? el('span', { className: 'pill s403' }, 'disabled') : undefined),
    ...noticesFor(client),
    clientForm(client, change, error),
    el('h4', {}, 'Credential'),
    credentialActions(client, change),
    el('h4', {}, 'Generations'),
    el('ol', { className: 'timeline' }, ...changes),
    el('h4', {}, 'Routes'),
    matrix(scope.split(' ')),
  );
}

const pathOf = ({ client_id }) => `/clients/${encodeURIComponent(client_id)}`;

function noticesFor({ client_id, out }) {
  const warnings = [unpublished.has(client_id) && NOT_PUBLISHED, warningOf(client_id)].filter(Boolean);
  const notices = warnings.map((text) => el('p', { className: 'error', role: 'status' }, text));
  const outTexts = [el('b', {}, `${client_id} ${NOT_FETCHED}`), el('span', {}, OUT)];
  return out ? [...notices, el('p', { className: 'fix', role: 'status' }, ...outTexts)] : notices;
}

function clientForm(client, change, error) {
  const scopes = scopeFields(client.scope.split(' '));
  const input = el('input', { id: 'description', value: client.description, autocomplete: 'off' });
  const onsubmit = (event) => {
    event.preventDefault();
    const body = { description: input.value, scope: scopes.read() };
    void change('PATCH', pathOf(client), body, `${client.client_id} saved`);
  };
  return el(
    'form',
    { onsubmit },
    el('label', { htmlFor: 'description' }, 'Description'),
    input,
    scopes.element,
    el('p', { className: 'hint' }, 'A changed Description or a removed scope discards every token issued before.'),
    error,
    el('div', { className: 'actions' }, el('button', { className: 'primary' }, 'Save')),
  );
}

function credentialActions(client, change) {
  const { client_id, disabled } = client;
  const path = pathOf(client);
  const action = (label, ...args) => el('button', { type: 'button', onclick: () => void change(...args) }, label);
  return el(
    'div',
    { className: 'actions start' },
    action('Rotate secret', 'POST', `${path}/secrets`, {}, `${client_id} has a new secret`),
    action('Revoke tokens', 'POST', `${path}/revoke`, undefined, `the tokens of ${client_id} are revoked`),
    disabled
      ? action('Enable', 'PATCH', path, { disabled: false }, `${client_id} enabled`)
      : action('Disable', 'PATCH', path, { disabled: true }, `${client_id} disabled`),
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
    const isAllowed = mayCall(route, granted);
    const needs = route.requires.map((set) => set.join(' and ')).join(' or ') || 'any token';
    const text = `${isAllowed ? 'allowed by' : 'needs'} ${needs}`;
    return el(
      'td',
      { title: text, className: isAllowed ? 'yes' : 'no' },
      el('span', { 'aria-hidden': 'true' }, isAllowed ? '✓' : '–'),
      el('span', { className: 'hidden' }, text),
    );
  };
  const names = ['Path', ...methods].map((name) => el('th', { scope: 'col' }, name));
  const rows = [...new Set(state.routes.map(({ path }) => path))].map((path) =>
    el('tr', {}, el('th', { scope: 'row' }, path), ...methods.map((method) => cell(path, method))),
  );
  const head = el('thead', {}, el('tr', {}, ...names));
  const table = el('table', { className: 'matrix' }, head, el('tbody', {}, ...rows));
  const region = { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Routes and scopes' };
  return el('div', region, table);
}

/** A checkbox for each scope, or a text field where any scope may be registered. */
export function scopeFields(granted) {
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
  const chosen = () => boxes.filter(({ checked }) => checked).map(({ value }) => value);
  return { element, read: () => chosen().join(' ') };
}

const secret = $('#secret');

export function showSecret(text) {
  $('code', secret).textContent = text;
  secret.showModal();
}
secret.addEventListener('close', () => ($('code', secret).textContent = ''));
$('[value=done]', secret).addEventListener('click', () => secret.close());
$('[value=copy]', secret).addEventListener('click', () => copy($('code', secret).textContent));
