import { Router } from 'express';
import type { RequestHandler } from 'express';
import { serveFiles, setup } from 'swagger-ui-express';
import type { ContractDocument } from '@tillgate/testing/internal';
import { withoutSlash } from 'tillgate/internal';
import { serving, titleOf } from './pages';

const TOKEN_PATH = '/connect/token';

/**
 * `GET /docs/`: the contract in Swagger UI, from the files of its package: it works offline, and its requests go to this API and
 * to the token endpoint only.
 *
 * @param authUrl - `{auth_url}`, or the issuer
 */
export function docsPage(contract: ContractDocument, baseUrl: string, authUrl: string | undefined): RequestHandler {
  const document = withUrls(contract, withoutSlash(baseUrl), authUrl && withoutSlash(authUrl));
  const policy = contentSecurityPolicy(authUrl);
  const router = Router();
  const handler = serving(router, '/docs', '/docs/{*file}');
  router.use('/docs', function allowPage(_req, res, next) {
    res.set('Content-Security-Policy', policy);
    next();
  });
  // The page is made by setup(), the script that starts Swagger UI in it by serveFiles().
  const options = { customSiteTitle: titleOf(contract), swaggerOptions: { tryItOutEnabled: true } };
  router.use('/docs', ...serveFiles(document, options), setup(document, options));
  return handler;
}

/** No script but those of the package; Swagger UI has inline styles and draws its icons from data: URLs. */
function contentSecurityPolicy(authUrl: string | undefined): string {
  const authOrigin = authUrl === undefined ? '' : ` ${new URL(authUrl).origin}`;
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    `connect-src 'self'${authOrigin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** The document with URLs in place of the names in its texts; requests go to the origin of the page. */
function withUrls(contract: ContractDocument, baseUrl: string, authUrl: string | undefined): object {
  const quoted = (url: string): string => JSON.stringify(url).slice(1, -1);
  let text = JSON.stringify({ ...contract, servers: [{ url: new URL(baseUrl).pathname }] });
  text = text.replaceAll('{base_url}', () => quoted(baseUrl));
  if (authUrl === undefined) return JSON.parse(text) as object;
  const document = JSON.parse(text.replaceAll('{auth_url}', () => quoted(authUrl))) as ContractDocument;
  const tokenPath = document.paths[TOKEN_PATH];
  if (tokenPath) Object.assign(tokenPath, { servers: [{ url: authUrl }] });
  for (const { flows } of Object.values(document.components?.securitySchemes ?? {})) {
    if (flows?.['clientCredentials']) Object.assign(flows['clientCredentials'], { tokenUrl: authUrl + TOKEN_PATH });
  }
  return document;
}
