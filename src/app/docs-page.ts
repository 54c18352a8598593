import { Router } from 'express';
import { serveFiles, setup } from 'swagger-ui-express';
import type { Contract } from './contract';
import { refuseWriting, withoutSlash } from './pages';
import type { AppSettings } from './settings';

const TOKEN_PATH = '/connect/token';

/**
 * `GET /docs/`: openapi.yaml in Swagger UI, from the files of its package: it works offline, and its requests go to this API
 * and to the token endpoint only.
 */
export function docsPage(contract: Contract, { baseUrl, issuer, authUrl = issuer }: AppSettings): Router {
  const document = withUrls(contract, withoutSlash(baseUrl), authUrl && withoutSlash(authUrl));
  const policy = contentSecurityPolicy(authUrl);
  const router = Router();
  router.use('/docs', function allowPage(req, res, next) {
    if (req.method !== 'GET' && req.method !== 'HEAD') return refuseWriting(req, res, next);
    res.set('Content-Security-Policy', policy);
    next();
  });
  // The page is made by setup(), the script that starts Swagger UI in it by serveFiles().
  const options = { customSiteTitle: contract.info.title, swaggerOptions: { tryItOutEnabled: true } };
  router.use('/docs', ...serveFiles(document, options), setup(document, options));
  return router;
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
function withUrls(contract: Contract, baseUrl: string, authUrl = ''): object {
  const quoted = (url: string): string => JSON.stringify(url).slice(1, -1);
  let text = JSON.stringify({ ...contract, servers: [{ url: new URL(baseUrl).pathname }] });
  text = text.replaceAll('{base_url}', () => quoted(baseUrl));
  if (authUrl !== '') text = text.replaceAll('{auth_url}', () => quoted(authUrl));
  const document = JSON.parse(text) as Contract;
  if (authUrl === '') return document;
  Object.assign(document.paths[TOKEN_PATH] ?? {}, { servers: [{ url: authUrl }] });
  Object.assign(document.components.securitySchemes.oauth2.flows.clientCredentials, { tokenUrl: authUrl + TOKEN_PATH });
  return document;
}
