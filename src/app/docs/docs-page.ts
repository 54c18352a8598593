import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Router } from 'express';
import type { RequestHandler } from 'express';
import { attempt } from '../../core/objects';
import { foreignCaller, withoutSlash } from '../../core/urls';
import type { ContractDocument } from '../../testing/openapi/document';
import { sendDocument, sendPage, serving, titleOf } from '../pages';

/** Options of the documentation page at `{base_url}/docs`. */
export interface DocsOptions {
  /** Default: `/connect/token` of the authorization server of the settings. */
  readonly tokenUrl?: string | undefined;
  /**
   * The client that Authorize is filled in with, for development: only callers on this machine get it. Default: none,
   * the reader types one in.
   */
  readonly client?: (() => Promise<DocsClient | undefined>) | undefined;
}

/** Client credentials that the documentation page is filled in with. */
export interface DocsClient {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scopes: readonly string[];
}

/** Served by the authorization server. */
const TOKEN_PATH = '/connect/token';
const STATIC = join(__dirname, 'static');
const MAX_AGE_MS = 3_600_000;

/**
 * `GET /docs`: the contract in Swagger UI, from files of the package swagger-ui-dist, without an inline script and
 * without another host than that of the token endpoint. Where swagger-ui-dist is not installed, says so.
 */
export function docsPage(
  options: DocsOptions & {
    readonly contract: ContractDocument;
    readonly baseUrl: string;
    /** `{auth_url}`, or the issuer. */
    readonly authUrl: string | undefined;
  },
  locate = swaggerUi,
): RequestHandler {
  const { contract, authUrl, client } = options;
  const title = titleOf(contract);
  const base = withoutSlash(new URL(options.baseUrl).pathname);
  const tokenUrl = options.tokenUrl ?? (authUrl && `${withoutSlash(authUrl)}${TOKEN_PATH}`);
  const policy = contentSecurityPolicy(tokenUrl);
  const folder = locate();
  const router = Router();
  const handler = serving(router, '/docs');

  if (folder === undefined) {
    router.get('/docs', function serveInstruction(_req, res) {
      sendPage(res, title, instruction(base));
    });
    return handler;
  }

  router.get('/docs', function serveDocs(_req, res) {
    sendDocument(res, { policy, title, head: headOf(`${base}/docs`), body: BODY });
  });
  for (const [name, directory] of [
    ['swagger-ui-bundle.js', folder],
    ['swagger-ui.css', folder],
    ['docs.js', STATIC],
    ['docs.css', STATIC],
  ] as const) {
    router.get(`/docs/${name}`, function serveFile(_req, res) {
      // With a root, because a folder of the path may begin with a dot: node_modules/.pnpm.
      res.sendFile(name, { root: directory, maxAge: directory === STATIC ? 0 : MAX_AGE_MS });
    });
  }
  const urls = [tokenUrl, authUrl && withoutSlash(authUrl), withoutSlash(options.baseUrl)];
  const document = documentForBrowser(withUrls(contract, urls), base, tokenUrl);
  router.get('/docs/openapi.json', function serveDocument(_req, res) {
    res.json(document);
  });
  router.get('/docs/client.json', async function serveClient(req, res) {
    res.set('Cache-Control', 'no-store').json((foreignCaller(req) === undefined && (await client?.())) || {});
  });
  return handler;
}

/** Requests go to this API and to the token endpoint only. The images are icons in the style sheet of Swagger UI. */
function contentSecurityPolicy(tokenUrl: string | undefined): string {
  const tokenOrigin = tokenUrl === undefined ? '' : ` ${new URL(tokenUrl).origin}`;
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    'img-src data:',
    `connect-src 'self'${tokenOrigin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function headOf(path: string): string {
  return `<link rel="stylesheet" href="${path}/swagger-ui.css">
<link rel="stylesheet" href="${path}/docs.css">
<script defer src="${path}/swagger-ui-bundle.js"></script>
<script defer src="${path}/docs.js"></script>`;
}

const BODY = `<div id="docs"><noscript>This page needs JavaScript.</noscript></div>`;

function instruction(base: string): string {
  return `<p>This page shows the contract in Swagger UI, which is not installed:</p>
<p><code>npm install --save-dev --ignore-scripts swagger-ui-dist@5</code></p>
<p>The contract itself: <a href="${base}/openapi.yaml"><code>openapi.yaml</code></a>,
<a href="${base}/openapi.json"><code>openapi.json</code></a></p>`;
}

/** The contract with the URLs of this API: relative, so that requests go to the origin of the page. */
function documentForBrowser(contract: ContractDocument, base: string, tokenUrl: string | undefined): object {
  const { paths, components } = contract;
  const { [TOKEN_PATH]: tokenPath, ...others } = paths;
  const servers = [{ url: base === '' ? '/' : base }];
  const authUrl = tokenUrl?.endsWith(TOKEN_PATH) ? tokenUrl.slice(0, -TOKEN_PATH.length) : undefined;
  return {
    ...contract,
    servers,
    paths: {
      ...(tokenPath && authUrl !== undefined && { [TOKEN_PATH]: { ...tokenPath, servers: [{ url: authUrl }] } }),
      ...others,
    },
    components: { ...components, securitySchemes: withTokenUrl(components, tokenUrl) },
  };
}

const URL_NAMES = [`{auth_url}${TOKEN_PATH}`, '{auth_url}', '{base_url}'];

/** The document with URLs in place of the names that its texts use. */
function withUrls(document: ContractDocument, urls: readonly (string | undefined)[]): ContractDocument {
  let text = JSON.stringify(document);
  const escaped = (url: string): string => JSON.stringify(url).slice(1, -1);
  for (const [index, name] of URL_NAMES.entries()) text = text.replaceAll(name, () => escaped(urls[index] ?? name));
  return JSON.parse(text) as ContractDocument;
}

function withTokenUrl(
  { securitySchemes = {} }: ContractDocument['components'] = {},
  tokenUrl: string | undefined,
): object {
  if (tokenUrl === undefined) return securitySchemes;
  const changed = Object.entries(securitySchemes).map(([name, scheme]) => {
    const flow = scheme.flows?.['clientCredentials'];
    return [name, flow ? { ...scheme, flows: { clientCredentials: { ...flow, tokenUrl } } } : scheme] as const;
  });
  return Object.fromEntries(changed);
}

/** The folder of swagger-ui-dist, an optional peer; `undefined` where it is not installed. */
function swaggerUi(): string | undefined {
  return attempt(() => dirname(createRequire(__filename).resolve('swagger-ui-dist/package.json')));
}
