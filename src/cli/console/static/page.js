// The console. Text from elsewhere becomes text nodes only; the policy of the page refuses anything else.

export const $ = (selector, parent = document) => parent.querySelector(selector);
/** What is known of the servers; requests are newest first. */
export const state = { clients: [], routes: [], scopes: null, requests: [] };

/** Makes an element. Members of `props` are set as properties, or as attributes where the name has a dash. */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.includes('-')) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

export async function call(method, path, body) {
  const headers = body && { 'Content-Type': 'application/json' };
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const result = response.status === 204 ? {} : await response.json();
  if (!response.ok) throw new Error(result.detail ?? result.error_description ?? `Status ${response.status}`);
  return result;
}

/** Whether scopes are enough for a route. */
export const mayCall = ({ requires }, granted) => requires.some((set) => set.every((scope) => granted.includes(scope)));

export const announce = (text) => ($('#announcement').textContent = text);
export const clock = (at) => new Date(at).toLocaleTimeString('en-GB');

/** How long ago a time was; the hover shows the time itself. */
function ago(at) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(at)) / 1000));
  if (seconds < 5) return 'now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : new Date(at).toLocaleDateString('en-CA');
}
export const timeAgo = (at, title = clock(at)) => el('time', { dateTime: at, title, className: 'ago' }, ago(at));
setInterval(() => {
  for (const time of document.querySelectorAll('time.ago')) time.textContent = ago(time.dateTime);
}, 5_000);

export function kindOf(status) {
  if (status === 401 || status === 403) return String(status);
  return status < 400 ? '2xx' : status < 500 ? '4xx' : '5xx';
}
export const pill = (status) => el('span', { className: `pill s${kindOf(status)}` }, String(status));

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce('Copied');
  } catch {
    announce('The browser did not allow this page to copy');
  }
}

export function timeOf(generation) {
  const date = new Date(generation);
  if (!(generation > 1e12) || Number.isNaN(date.getTime())) return String(generation);
  const ms = String(date.getMilliseconds()).padStart(3, '0');
  const day = date.toDateString() === new Date().toDateString() ? '' : `${date.toLocaleDateString('en-CA')} `;
  return `${day}${clock(date)}.${ms}`;
}

// Tabs (the keyboard pattern of WAI-ARIA).

const tabs = [...document.querySelectorAll('[role=tab]')];

export function showTab(name, { focus = false } = {}) {
  for (const tab of tabs) {
    const selected = tab.id === `tab-${name}`;
    tab.setAttribute('aria-selected', String(selected));
    tab.tabIndex = selected ? 0 : -1;
    $(`#${tab.getAttribute('aria-controls')}`).hidden = !selected;
  }
  if (focus && matchMedia('(max-width: 70rem)').matches) {
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
