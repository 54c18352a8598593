import type { ServerResponse } from 'node:http';
import { refuseUncalled } from '../core/options';
import { describe } from '../core/words';
import { isHttpUrl, resourceMetadataUrl, METADATA_PATH } from '../core/urls';
import type { GateSettings } from '../verifier/read-options';
import { gateOf } from '../verifier/gate-verifier';
import { sendProblem } from './respond';
import type { GateRequest, Middleware, Next } from './request-state';

/** `protectedResourceMetadata()`. */
export function metadataMiddleware(gate: Middleware): Middleware {
  refuseUncalled('protectedResourceMetadata(gate)', [gate]);
  const settings = gateOf(gate)?.settings;
  if (settings?.resource === undefined) {
    const expected = 'what authenticate() returned, with the option "resource"';
    throw new TypeError(`protectedResourceMetadata(): expected ${expected}, got ${describe(gate)}`);
  }
  const { pathname, search } = new URL(resourceMetadataUrl(settings.resource));
  const body = Buffer.from(JSON.stringify(metadataOf(settings)));

  /** Of a resource with a query only its own URL; else any query, and without the path, for clients that leave it out. */
  function isServedAt(url: string): boolean {
    const [path = ''] = url.split('?', 1);
    if (path === pathname && search !== '') return url.slice(path.length) === search;
    return path === pathname || path === METADATA_PATH;
  }

  function protectedResourceMetadata(req: GateRequest, res: ServerResponse, next: Next): void {
    if (!isServedAt(req.url ?? '') || res.headersSent) return next();
    // Public, and the same for every caller: browsers may show it to any page.
    res.setHeader('Access-Control-Allow-Origin', '*');
    if (req.method === 'GET' || req.method === 'HEAD') {
      res.setHeader('Content-Type', 'application/json; charset=utf-8');
      res.setHeader('Content-Length', body.length);
      res.setHeader('Cache-Control', 'public, max-age=300');
      res.end(req.method === 'HEAD' ? undefined : body);
    } else if (req.method === 'OPTIONS') {
      res.statusCode = 204;
      for (const [name, value] of PREFLIGHT) res.setHeader(name, value);
      res.end();
    } else {
      const detail = 'The metadata can be read with GET only.';
      sendProblem(req, res, { status: 405, code: 'method_not_allowed', detail, headers: { Allow: METHODS } });
    }
  }
  // For route audits: a middleware has no route to read.
  return Object.assign(protectedResourceMetadata as Middleware, { serves: [...new Set([METADATA_PATH, pathname])] });
}

const METHODS = 'GET, HEAD, OPTIONS';
const PREFLIGHT = [
  ['Allow', METHODS],
  ['Access-Control-Allow-Methods', 'GET, HEAD'],
  // Clients send headers of their own, such as MCP-Protocol-Version.
  ['Access-Control-Allow-Headers', '*'],
  ['Access-Control-Max-Age', '86400'],
] as const;

/** The document of RFC 9728 section 2. */
function metadataOf({ resource, issuers, challengeScopes, challenges, ...settings }: GateSettings): object {
  const kinds = settings.possession.map(({ confirmation }) => confirmation);
  const [dpop] = challenges;
  // With given keys the name of an issuer need not be a URL.
  const servers = issuers.map(({ issuer }) => issuer).filter(isHttpUrl);
  return {
    resource,
    // A list without elements must be left out (section 3.2).
    authorization_servers: servers.length > 0 ? servers : undefined,
    bearer_methods_supported: ['header'],
    scopes_supported: challengeScopes,
    ...(dpop && {
      dpop_signing_alg_values_supported: dpop.algorithms,
      dpop_bound_access_tokens_required: settings.possessionRequired && kinds.length === 1,
    }),
    tls_client_certificate_bound_access_tokens: kinds.includes('x5t#S256') || undefined,
  };
}
