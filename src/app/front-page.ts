import { basename, dirname } from 'node:path';
import { Router } from 'express';
import { ownValue } from '../core/objects';
import { withoutSlash } from '../core/urls';
import { CONTRACT_FILE } from '../openapi/document';
import type { ContractDocument } from '../openapi/document';
import { escapeHtml, sendPage } from './html';

/** What `GET /` links to. */
export interface FrontPageOptions {
  readonly contract: ContractDocument;
  /** Public URL of the API. */
  readonly baseUrl: string;
  readonly issuer: string | undefined;
  /** Whether `/docs` is served. */
  readonly docs?: boolean;
}

/**
 * `GET /` says what this API is and where to go, as HTML or JSON; `/openapi.yaml` and `/openapi.json` are its contract.
 * All without a token.
 */
export function frontPage({ contract, baseUrl, issuer, docs = false }: FrontPageOptions): Router {
  const router = Router();
  const base = withoutSlash(baseUrl);
  const name = titleOf(contract);
  const links = {
    ...(docs && { docs: `${base}/docs` }),
    openapi: `${base}/openapi.yaml`,
    protected_resource_metadata: `${base}/.well-known/oauth-protected-resource`,
    health: `${base}/readyz`,
    ...(issuer !== undefined && { authorization_server: issuer }),
  };

  router.get('/', function serveFrontPage(req, res) {
    res.vary('Accept');
    if (req.accepts(['html', 'json']) === 'json') return void res.json({ name, ...links });
    sendPage(res, name, `${INTRODUCTION}\n<dl>\n${Object.entries(links).map(row).join('\n')}\n</dl>`);
  });
  router.get('/openapi.yaml', function serveYaml(_req, res) {
    // With a root, because a folder of the path may begin with a dot: node_modules/.pnpm.
    res.type('application/yaml').sendFile(basename(CONTRACT_FILE), { root: dirname(CONTRACT_FILE) });
  });
  router.get('/openapi.json', function serveJson(_req, res) {
    res.json(contract);
  });
  return router;
}

const INTRODUCTION =
  '<p>Every route below <code>/v1</code> needs an access token: <code>Authorization: Bearer &lt;ACCESS_TOKEN&gt;</code>.</p>';

const LABELS: Readonly<Record<string, string>> = {
  docs: 'Documentation, to try out',
  openapi: 'Contract (OpenAPI 3.1)',
  protected_resource_metadata: 'Protected resource metadata (RFC 9728)',
  health: 'Health',
  authorization_server: 'Authorization server',
};

function row([member, url]: readonly [string, string]): string {
  const shown = escapeHtml(url);
  return `<dt>${LABELS[member] ?? member}</dt>\n<dd><a href="${shown}"><code>${shown}</code></a></dd>`;
}

/** The name of the API. */
export function titleOf(contract: ContractDocument): string {
  const title = ownValue(ownValue(contract, 'info'), 'title');
  return typeof title === 'string' ? title : 'API';
}
