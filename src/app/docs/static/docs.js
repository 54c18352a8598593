'use strict';
// Starts Swagger UI in the page at /docs. Everything comes from this API; the policy of the page allows nothing else.

const base = new URL('.', document.currentScript.src);

async function start() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const applyTheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', applyTheme);
  applyTheme();

  const response = await fetch(new URL('client.json', base));
  const { clientId, clientSecret, scopes = [] } = await response.json();
  const ui = SwaggerUIBundle({
    url: new URL('openapi.json', base).href,
    dom_id: '#docs',
    docExpansion: 'none',
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
