import {
  chooseClient,
  chosenClient,
  notePublished,
  scopeFields,
  showClient,
  showClients,
  showSecret,
  warningOf,
} from './clients.js';
import { $, announce, call, el, pill, state } from './page.js';
import { chooseNewestRefusal, explanation, showRequests } from './requests.js';

// Registration.

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
  const shown = () => JSON.stringify(chosenClient());
  const before = shown();
  Object.assign(state, await call('GET', '/console/api/state'));
  const { requests: listed } = await call('GET', '/console/api/requests');
  // The stream may have brought newer ones meanwhile.
  const newest = listed[0]?.id ?? 0;
  state.requests = [...state.requests.filter(({ id }) => id > newest), ...listed];
  $('#base-url').textContent = state.base_url;
  $('#auth-url').textContent = state.auth_url;
  $('#docs').parentElement.parentElement.hidden = state.docs_url === null;
  $('#docs').href = state.docs_url ?? '/';
  showClients();
  showRequests();
  chooseNewestRefusal();
  if (before !== shown()) showClient();
}

function setConnection(text) {
  $('#connection').textContent = text;
  $('#connection').classList.toggle('live', text === 'Live');
}

let pending;
const events = new EventSource('/console/api/events');
events.addEventListener('open', () => setConnection('Live'));
// A stream that opens again may be of another process, which counts from 1.
for (const name of ['open', 'cleared']) {
  events.addEventListener(name, () => {
    state.requests = [];
    void load();
  });
}
events.addEventListener('error', () => setConnection('Disconnected: is tillgate dev running?'));
events.addEventListener('clients', () => void load());
events.addEventListener('request', ({ data }) => {
  state.requests = [JSON.parse(data), ...state.requests].slice(0, 500);
  // Many requests per second are drawn, and announced, together.
  pending ??= setTimeout(() => {
    pending = undefined;
    showRequests();
    chooseNewestRefusal();
    // The requests may have been cleared meanwhile.
    const { status, method, path, reason = '' } = state.requests[0] ?? {};
    if (status >= 400) announce(`${status} ${method} ${path} ${reason}`);
  }, 100);
});
