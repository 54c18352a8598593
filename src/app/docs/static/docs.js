'use strict';
// Starts Swagger UI in the page at /docs. Everything comes from this API; the policy of the page allows nothing else.

const base = new URL('.', document.currentScript.src);

// The search: what remains are the operations that have each of its words, in any group.

function textOf(operation) {
  const details = operation.get('operation');
  const scopes = JSON.stringify(details.get('security') ?? '');
  const words = [operation.get('method'), operation.get('path'), details.get('summary'), details.get('operationId')];
  return [...words, scopes].join(' ').toLowerCase();
}

function matching(groups, phrase) {
  const words = phrase.toLowerCase().split(/\s+/).filter(Boolean);
  return groups
    .map((group, name) =>
      group.update('operations', (operations) =>
        operations.filter((operation) => {
          const text = `${name.toLowerCase()} ${textOf(operation)}`;
          return words.every((word) => text.includes(word));
        }),
      ),
    )
    .filter((group) => group.get('operations').size > 0);
}

const search = ({ React }) => ({
  fn: { opsFilter: matching },
  components: {
    FilterContainer: ({ layoutSelectors, layoutActions }) => {
      const phrase = layoutSelectors.currentFilter();
      return React.createElement(
        'div',
        { className: 'wrapper search' },
        React.createElement('input', {
          type: 'search',
          value: typeof phrase === 'string' ? phrase : '',
          placeholder: 'Search: path, scope, summary',
          'aria-label': 'Search operations',
          onChange: ({ target }) => layoutActions.updateFilter(target.value),
        }),
      );
    },
  },
});

// Code samples. The token is a variable: what is copied from here ends in tickets and chats.

const shell = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** One operation as data for the samples: from the document, with its own examples. */
function requestOf(spec, path, method) {
  const operation = spec.getIn(['paths', path, method]);
  const server = operation?.getIn(['servers', 0, 'url']) ?? spec.getIn(['paths', path, 'servers', 0, 'url']);
  const own = spec.getIn(['servers', 0, 'url']) ?? '/';
  const url = new URL((server ?? own).replace(/\/$/, '') + path, document.baseURI);
  const typeOf = (scheme) => spec.getIn(['components', 'securitySchemes', scheme, 'type']);
  const security = operation?.get('security') ?? spec.get('security');
  const [type, media] = operation?.getIn(['requestBody', 'content'])?.entrySeq().first() ?? [];
  return {
    method: method.toUpperCase(),
    url: decodeURI(url.href),
    needsToken: security?.some((one) => one.some((_scopes, name) => typeOf(name) === 'oauth2')) ?? false,
    type,
    body: media?.get('example')?.toJS?.() ?? (media && {}),
  };
}

const SAMPLES = {
  curl({ method, url, needsToken, type, body }) {
    const isForm = type?.includes('urlencoded');
    const data = isForm
      ? Object.entries(body).map(([name, value]) => `--data-urlencode ${shell(`${name}=${value}`)}`)
      : body && [`-H ${shell(`Content-Type: ${type}`)}`, `-d ${shell(JSON.stringify(body))}`];
    const parts = [
      `curl -i${method === 'GET' ? '' : ` -X ${method}`} ${shell(url)}`,
      ...(needsToken ? ['-H "Authorization: Bearer $TOKEN"'] : []),
      ...(data ?? []),
    ];
    return parts.join(' \\\n  ');
  },
  fetch({ method, url, needsToken, type, body }) {
    const isForm = type?.includes('urlencoded');
    const headers = [
      ...(needsToken ? ['Authorization: `Bearer ${token}`'] : []),
      ...(body && !isForm ? [`'Content-Type': '${type}'`] : []),
    ];
    const json = JSON.stringify(body, undefined, 2)?.replaceAll('\n', '\n  ');
    const lines = [
      ...(method === 'GET' ? [] : [`method: '${method}',`]),
      ...(headers.length > 0 ? [`headers: { ${headers.join(', ')} },`] : []),
      ...(body ? [`body: ${isForm ? 'new URLSearchParams' : 'JSON.stringify'}(${json}),`] : []),
    ];
    const options = lines.length > 0 ? `, {\n  ${lines.join('\n  ')}\n}` : '';
    return `const response = await fetch('${url}'${options});\nconsole.log(response.status, await response.json());`;
  },
};

const samples = ({ React }) => {
  const h = React.createElement;

  function Samples({ request }) {
    const [chosen, choose] = React.useState('curl');
    const [said, say] = React.useState('');
    const text = SAMPLES[chosen](request);
    const copy = () =>
      navigator.clipboard.writeText(text).then(
        () => say('Copied'),
        () => say('Not allowed by the browser'),
      );
    const pick = (name) => () => {
      choose(name);
      say('');
    };
    return h(
      'section',
      { className: 'samples', 'aria-label': 'Code samples' },
      h(
        'div',
        { className: 'bar' },
        ...Object.keys(SAMPLES).map((name) =>
          h('button', { key: name, type: 'button', 'aria-pressed': name === chosen, onClick: pick(name) }, name),
        ),
        h('button', { type: 'button', className: 'copy', onClick: copy }, 'Copy'),
        h('span', { role: 'status' }, said),
      ),
      h('pre', { tabIndex: 0 }, h('code', null, text)),
    );
  }

  return {
    wrapComponents: {
      responses: (Original) => (props) =>
        h(
          React.Fragment,
          null,
          h(Samples, { request: requestOf(props.specSelectors.specJson(), props.path, props.method) }),
          h(Original, props),
        ),
      // What was executed is shown by Swagger UI with the token in it.
      curl: () => () => null,
    },
  };
};

// Authorize: the dialog of Swagger UI has no focus, and does not close with Escape.

function watchDialog() {
  let opener;
  document.addEventListener(
    'click',
    ({ target }) => (opener = target.closest('button.authorize, button.authorization__btn') ?? opener),
    true,
  );
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') document.querySelector('.modal-ux .close-modal')?.click();
  });
  let isOpen = false;
  new globalThis.MutationObserver(() => {
    const dialog = document.querySelector('.modal-ux');
    if (Boolean(dialog) === isOpen) return;
    isOpen = Boolean(dialog);
    if (!dialog) return void opener?.focus();
    dialog.setAttribute('role', 'dialog');
    dialog.setAttribute('aria-modal', 'true');
    dialog.setAttribute('aria-label', 'Available authorizations');
    const field = dialog.querySelector('input[id^=client_id]') ?? dialog.querySelector('input, button');
    field?.focus();
    field?.scrollIntoView({ block: 'center' });
  }).observe(document.querySelector('#docs'), { childList: true, subtree: true });
}

async function start() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const applyTheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', applyTheme);
  applyTheme();
  watchDialog();

  const response = await fetch(new URL('client.json', base));
  const { clientId, clientSecret, scopes = [] } = await response.json();
  const ui = SwaggerUIBundle({
    url: new URL('openapi.json', base).href,
    dom_id: '#docs',
    plugins: [search, samples],
    filter: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    onComplete() {
      if (clientId !== undefined) ui.initOAuth({ clientId, clientSecret, scopes });
    },
  });
}

void start();
