import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { source as axeSource } from 'axe-core';
import type { AxeResults } from 'axe-core';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';
import { startTillgate } from '../setup/tillgate';
import type { DevReport } from '../setup/tillgate';

const CHROMIUM = 'chromium';

/** What this machine lacks to run a browser, as one line; `undefined` when nothing. */
export function missingForBrowser(): string | undefined {
  if (!spawnSync(CHROMIUM, ['--version']).error) return undefined;
  return `the browser suite is skipped: ${CHROMIUM} not found (apt-get install chromium)`;
}

/** `tillgate dev` and a browser. */
export interface BrowserScene {
  readonly base: string;
  readonly auth: string;
  /** The origin of a page that may call the API. */
  readonly shop: string;
  /** Opens a page. Whatever it reports to its console as an error, violations of its policy included, is in `errors`. */
  open(url: string): Promise<Page>;
  readonly errors: string[];
  stop(): Promise<void>;
}

/** Widths and themes in which pages are shown. */
export const VIEWS = [
  [1280, 'light'],
  [1280, 'dark'],
  [400, 'light'],
  [400, 'dark'],
] as const;

/** Shows a page in another width and theme. */
export async function show(page: Page, [width, colorScheme]: (typeof VIEWS)[number]): Promise<void> {
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme });
}

export async function startBrowser(): Promise<BrowserScene> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tillgate-browser-'));
  const shop = await startShop();
  const ports = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0' } as const;
  const variables = { ...ports, TILLGATE_DATA_DIR: dataDir, TILLGATE_CORS_ORIGINS: shop.origin };
  const executable = spawnSync('which', [CHROMIUM], { encoding: 'utf8' }).stdout.trim();
  // Chromium's sandbox does not run as root.
  const launched = chromium.launch({ executablePath: executable, args: ['--no-sandbox'] });
  const [tillgate, browser] = await Promise.all([startTillgate<DevReport>('dev', variables), launched]);
  const errors: string[] = [];
  return {
    base: tillgate.report.base_url,
    auth: tillgate.report.auth_url,
    shop: shop.origin,
    errors,
    open: (url) => openPage(browser, url, errors),
    async stop() {
      await browser.close();
      await tillgate.stop();
      shop.close();
      await rm(dataDir, { recursive: true });
    },
  };
}

/** A page of another origin. */
async function startShop(): Promise<{ readonly origin: string; close(): void }> {
  const server = createServer((_req, res) => res.setHeader('Content-Type', 'text/html').end('<p>shop</p>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, close: () => void server.close() };
}

async function openPage(browser: Browser, url: string, errors: string[]): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
  // A limit for what never comes: a machine that does other work as well must not fail a test.
  page.setDefaultTimeout(120_000);
  // Chromium reports a response of 400 or above as well.
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      errors.push(message.text());
  });
  page.on('pageerror', ({ message, stack = '' }) => errors.push(`${message}\n${stack}`));
  page.on('dialog', (dialog) => {
    errors.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  return page;
}

/**
 * The rules of WCAG and best practices that a page breaks, with the elements that do.
 *
 * @param theirs - rules that markup of a library breaks
 */
export async function violationsOf(page: Page, theirs: readonly string[] = []): Promise<string[]> {
  await page.evaluate(axeSource);
  const rules = Object.fromEntries(theirs.map((rule) => [rule, { enabled: false }]));
  const { violations } = await page.evaluate(
    (options) => (globalThis as unknown as { axe: { run(o: object): Promise<AxeResults> } }).axe.run(options),
    { rules, resultTypes: ['violations'] },
  );
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}
