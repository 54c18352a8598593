import { join } from 'node:path';
import type { Page, Response } from 'playwright-core';
import { buildSync } from 'esbuild';
import { missingForBrowser, show, startBrowser, VIEWS, violationsOf } from './browser';
import type { BrowserScene } from './browser';

const missing = missingForBrowser();
if (missing !== undefined) console.warn(missing);

const MARKUP = '<img src=x onerror=alert(1)> back door';

(missing === undefined ? describe : describe.skip)('in a browser', () => {
  let scene: BrowserScene;
  let console: Page;
  let docs: Page;
  let secret: string;
  let token: string;

  beforeAll(async () => {
    scene = await startBrowser();
    console = await scene.open(`${scene.auth}/console`);
    docs = await scene.open(`${scene.base}/docs/`);
  });
  afterAll(() => scene?.stop());

  /** Executes an operation of the API reference page. Other requests of the page do not count: it gets its icon again, for instance. */
  async function execute(id: string): Promise<Response> {
    const operation = docs.locator(`#operations-${id}`);
    if (!(await operation.locator('button.execute').isVisible())) {
      await operation.locator('.opblock-summary-control').click();
    }
    const method = await operation.locator('.opblock-summary-method').innerText();
    const path = await operation.locator('.opblock-summary-path').getAttribute('data-path');
    const responded = docs.waitForResponse(
      (response) => response.request().method() === method && new URL(response.url()).pathname === path,
    );
    await operation.locator('button.execute').click();
    return responded;
  }

  const requestsOf = (text: string) => console.locator('#requests button', { hasText: text });

  it('says what to paste while there is no request', async () => {
    await console.getByText('No request so far.').waitFor();
    expect(await console.locator('#no-requests .line code').allInnerTexts()).toEqual([
      expect.stringMatching(/^TILLGATE_DATA_DIR=\/\S+ .*tillgate.* call GET \/v1\/\w+ --as pos-terminal$/),
      expect.stringMatching(new RegExp(`^curl -i '${scene.base}/v1/\\w+'$`)),
    ]);
  });

  it('registers a client in the console, which shows its secret once', async () => {
    await console.getByRole('button', { name: 'Register' }).click();
    const hint = console.locator('#registration .hint');
    await console.getByLabel('Client id').fill('till:9');
    expect(await hint.innerText()).toContain('Many client libraries cannot send + % : in a client id by HTTP Basic');
    await console.getByLabel('Client id').fill('till-9');
    expect(await hint.innerText()).toBe('');
    await console.locator('#new-description').fill(MARKUP);
    await console.locator('#registration').getByLabel('orders:read').check();
    await console.locator('#registration').getByRole('button', { name: 'Register' }).click();
    secret = await console.locator('#secret[open] code').innerText();
    expect(secret).toMatch(/^[\w-]{43}$/);
    await console.getByRole('button', { name: 'Done' }).click();
    // The event that empties the dialog comes after the click has returned.
    await console.locator('#secret code', { hasText: secret }).waitFor({ state: 'detached' });
    expect(await console.content()).not.toContain(secret);
  });

  it('shows a Description as text', async () => {
    await console.locator('#clients button', { hasText: 'till-9' }).waitFor();
    expect(await console.locator('#clients li', { hasText: 'till-9' }).locator('span').innerText()).toBe(MARKUP);
    expect(await console.locator('img').count()).toBe(0);
  });

  it('gets a token on the API reference page', async () => {
    await docs.locator('.scheme-container button.authorize').click();
    const form = docs.locator('.auth-container', { hasText: 'clientCredentials' });
    await form.locator('input[id^=client_id]').fill('till-9');
    await form.locator('input[id^=client_secret]').fill(secret);
    await form.getByText('select none').click();
    await form.locator('label[for^="orders:read"]').click();
    const issued = docs.waitForResponse((response) => response.request().method() === 'POST');
    await form.locator('button.authorize').click();
    const response = await issued;
    expect(response.url()).toBe(`${scene.auth}/connect/token`);
    expect(response.status()).toBe(200);
    token = ((await response.json()) as { access_token: string }).access_token;
    await docs.locator('.modal-ux .close-modal').click();
  });

  it('calls a route from the API reference page, and the console shows the request', async () => {
    expect((await execute('Orders-listOrders')).status()).toBe(200);
    const row = requestsOf('/v1/orders').first();
    await row.filter({ hasText: 'till-9' }).waitFor();
    expect(await row.innerText()).toMatch(/^200\s+GET \/v1\/orders/);
    expect(await row.locator('time').innerText()).toMatch(/^(now|\d+ s ago)$/);
  });

  it('says why a request was denied', async () => {
    expect((await execute('Orders-createOrder')).status()).toBe(403);
    // The newest refusal is chosen without a click; the client that was registered stays in front.
    await console.locator('#tab-why').click();
    const why = console.locator('#why');
    await why.getByText('Add orders:write to the scopes of till-9').waitFor();
    expect(await why.locator('.compare').innerText()).toMatch(/orders:read[^]*orders:write/);
    expect(await why.locator('.checks .failed').innerText()).toContain('scope');
    expect(await why.locator('.claims').innerText()).toContain('till-9');
    expect(await console.content()).not.toContain(token.slice(-40));
  });

  it('refuses the token once the Description has changed', async () => {
    await console.locator('#clients button', { hasText: 'till-9' }).click();
    await console.locator('#description').fill('Front door');
    await console.getByRole('button', { name: 'Save' }).click();
    await console.locator('.timeline', { hasText: 'Description changed' }).waitFor();
    expect(await console.locator('#client').innerText()).not.toContain('undefined');
    expect((await execute('Orders-listOrders')).status()).toBe(401);
    await requestsOf('superseded').first().click();
    await console.locator('#why').getByText('Request a new token for till-9.').waitFor();
  });

  it('says that a client has not fetched a new token since the change', async () => {
    const chosen = console.locator('#clients button', { hasText: 'till-9' });
    await chosen.getByText('no new token').waitFor();
    await chosen.click();
    await console.locator('#client').getByText('till-9 has not fetched a new token since the change').waitFor();
    expect(await violationsOf(console)).toEqual([]);
    await console.locator('#tab-why').click();
  });

  it('links the reason to its page, and shows generations as times', async () => {
    const why = console.locator('#why');
    expect(await why.locator('.reason a').getAttribute('href')).toBe(`${scene.base}/problems/superseded`);
    const times = await why.locator('.compare code').allInnerTexts();
    expect(times).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\d\.\d{3}$/),
      expect.stringMatching(/\.\d{3} or later$/),
    ]);
  });

  it('copies a request as curl, without a token', async () => {
    await console.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: scene.auth });
    await console.getByRole('button', { name: 'Copy as curl' }).click();
    await console.locator('#announcement', { hasText: 'Copied' }).waitFor({ state: 'attached' });
    const copied = await console.evaluate<string>('navigator.clipboard.readText()');
    expect(copied).toContain(`curl -i '${scene.base}/v1/orders' -H "Authorization: Bearer $(`);
    expect(copied).toMatch(/tillgate.* token 'till-9'\)"$/);
  });

  it('replays a request as its client, and folds the token request away', async () => {
    await fetch(`${scene.base}/v1/items`);
    await requestsOf('missing_token').first().click();
    await console.locator('#why .reason', { hasText: 'missing_token' }).waitFor();
    await console.getByRole('button', { name: 'Replay' }).click();
    await console.locator('.replay', { hasText: 'as before' }).waitFor();
    expect(await console.locator('.replay .pill').innerText()).toBe('401');
    expect(await requestsOf('/connect/token').count()).toBe(0);
    await console.locator('#folded').click();
    await requestsOf('/connect/token').first().waitFor();
    await console.locator('#folded').click();
    expect(await requestsOf('/connect/token').count()).toBe(0);
  });

  it('searches requests by client, path and reason', async () => {
    await console.getByLabel('Search requests').fill('till-9 insufficient');
    expect(await console.locator('#requests .pill').allInnerTexts()).toEqual(['403']);
    expect(await console.locator('#statuses button').first().innerText()).toBe('All 1');
    await console.getByLabel('Search requests').fill('');
  });

  it('inspects a token', async () => {
    await console.getByRole('tab', { name: 'Token' }).click();
    await console.getByLabel('Access token').fill(token);
    await console.getByRole('button', { name: 'Inspect' }).click();
    await console.getByText('The API refuses this token').waitFor();
    await console.locator('#inspected').fill('');
  });

  it('is used by keyboard alone', async () => {
    await console.getByRole('tab', { name: 'Token' }).focus();
    await console.keyboard.press('ArrowLeft');
    expect(await console.getByRole('tab', { selected: true }).innerText()).toBe('Client');
    await console.locator('#statuses button', { hasText: '403' }).focus();
    await console.keyboard.press('Enter');
    expect(await console.locator('#requests .pill').allInnerTexts()).toEqual(['403']);
    await console.locator('#requests button').focus();
    await console.keyboard.press('Enter');
    await console.locator('#why .fix').waitFor();
    await console.getByRole('button', { name: 'All' }).click();
  });

  it('calls every kind of operation from the API reference page', async () => {
    for (const operation of ['Service-getReadiness', 'Token-requestToken']) {
      // The example of the token request has no real secret.
      expect((await execute(operation)).status()).toBe(operation.startsWith('Token') ? 401 : 200);
    }
  });

  it.each(VIEWS)('the console is accessible, %i pixels wide, %s', async (...view) => {
    await show(console, view);
    await requestsOf('insufficient_scope').first().click();
    await console.locator('#why .fix').waitFor();
    expect(await violationsOf(console)).toEqual([]);
    await console.locator('#clients button', { hasText: 'till-9' }).click();
    await console.locator('#client .matrix').waitFor();
    expect(await violationsOf(console)).toEqual([]);
    expect(await console.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(view[0]);
  });

  it('sends requests with a token from a page of an allowed origin only, and lets it read why one is refused', async () => {
    const page = await scene.open(scene.shop);
    const issued = await fetch(`${scene.auth}/connect/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`till-9:${secret}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'orders:read' }),
    });
    const { access_token: good } = (await issued.json()) as { access_token: string };
    const call = `async ([url, sent]) => {
      const response = await fetch(url, { headers: { Authorization: 'Bearer ' + sent } }).catch(() => undefined);
      return response && [response.status, response.headers.get('WWW-Authenticate')];
    }`;
    const url = `${scene.base}/v1/orders`;
    const callFrom = (sent: string): Promise<unknown> => page.evaluate(`(${call})(${JSON.stringify([url, sent])})`);
    expect(await callFrom(good)).toEqual([200, null]);
    expect(await callFrom('x')).toEqual([401, expect.stringContaining('error="invalid_token"')]);
    const before = scene.errors.length;
    await page.goto(scene.shop.replace('127.0.0.1', 'localhost'));
    // Chromium may report the refusal after it has rejected the request.
    const reported = page.waitForEvent('console', (message) => message.text().includes('blocked by CORS policy'));
    expect(await callFrom(good)).toBeUndefined();
    await reported;
    expect(scene.errors.splice(before)).toEqual([expect.stringContaining('blocked by CORS policy')]);
    await page.close();
  });

  it('calls by the client from a page of an allowed origin: a change costs one token request', async () => {
    const entryPoints = [join(__dirname, '../../../src/client/index.ts')];
    const { outputFiles } = buildSync({ entryPoints, bundle: true, format: 'esm', platform: 'browser', write: false });
    const page = await scene.open(scene.shop);
    const options = {
      tokenUrl: `${scene.auth}/connect/token`,
      baseUrl: scene.base,
      clientId: 'till-9',
      clientSecret: secret,
    };
    await page.evaluate(`(async () => {
      const source = ${JSON.stringify(outputFiles[0]?.text)};
      const { createClient } = await import(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })));
      globalThis.tokenRequests = 0;
      const counted = (url, init) => {
        if (url.endsWith('/connect/token')) globalThis.tokenRequests += 1;
        return fetch(url, init);
      };
      const client = createClient({ ...${JSON.stringify(options)}, scope: 'orders:read', fetch: counted });
      globalThis.call = (count) =>
        Promise.all(Array.from({ length: count }, async () => (await client.fetch('/v1/orders')).status));
    })()`);
    expect(await page.evaluate('call(1)')).toEqual([200]);
    const changed = await fetch(`${scene.auth}/clients/till-9`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ description: 'Back door' }),
    });
    expect(changed.status).toBe(200);
    expect(await page.evaluate('call(20)')).toEqual(Array(20).fill(200));
    expect(await page.evaluate('tokenRequests')).toBe(2);
    await page.close();
  });

  it('clears the requests', async () => {
    await console.getByRole('button', { name: 'Clear' }).click();
    await console.getByText('No request so far.').waitFor();
    expect(await console.locator('#requests li').count()).toBe(0);
  });

  it('breaks no policy and reports no error', () => {
    expect(scene.errors).toEqual([]);
  });
});
