import { ownMembers } from '../core/objects';
import { readOptions } from '../core/options';
import { hasUserInfo } from '../core/urls';
import type { Middleware } from './request';
import { readMtls } from '../token/possession/client-certificate';
import type { MtlsOptions } from '../token/possession/client-certificate';
import { readDpop } from '../token/possession/dpop-options';
import type { DpopOptions, DpopSettings } from '../token/possession/dpop-options';
import { isScopeToken } from '../token/scopes';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** URL of the metadata of a resource: the well-known part goes between host and path (RFC 9728 section 3.1). */
export function resourceMetadataUrl(resource: string): string {
  const { origin } = new URL(resource);
  return `${origin}${WELL_KNOWN}${pathOfResource(resource)}`;
}

/**
 * Makes the middleware that serves the protected resource metadata (RFC 9728): from it a client that knows only the
 * API's URL learns the authorization server. Mount it at the root of the app, before any gate.
 *
 * @throws TypeError when an option is wrong
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { protectedResourceMetadata } from 'tillgate';
 *
 * const app = express();
 * app.use(protectedResourceMetadata({
 *   resource: 'https://api.example.com',
 *   authorizationServers: ['https://login.example.com'],
 * }));
 * ```
 */
export function protectedResourceMetadata(options: {
  /** Public URL of the API: http(s), without a fragment. */
  readonly resource: string;
  /** Issuers whose tokens are accepted. */
  readonly authorizationServers: readonly string[];
  /** Scopes that the API knows. Default: not published. */
  readonly scopes?: readonly string[] | undefined;
  /** The option `dpop` of the gate: its algorithms are published, and whether it is required. */
  readonly dpop?: DpopOptions | undefined;
  /** The option `mtls` of the gate: that certificate-bound tokens are accepted is published. */
  readonly mtls?: MtlsOptions | undefined;
}): Middleware {
  const body = Buffer.from(JSON.stringify(readMetadata(options)));
  const paths = new Set([WELL_KNOWN, WELL_KNOWN + pathOfResource(options.resource)]);

  const middleware: Middleware = function protectedResourceMetadata(req, res, next) {
    const [path = ''] = (req.url ?? '').split('?', 1);
    if (!paths.has(path)) return next();
    if (req.method !== 'GET' && req.method !== 'HEAD') return next();
    if (res.headersSent) return next();
    res.setHeader('Content-Type', 'application/json; charset=utf-8');
    res.setHeader('Content-Length', body.length);
    res.setHeader('Cache-Control', 'public, max-age=300');
    res.end(req.method === 'HEAD' ? undefined : body);
  };
  // For route audits: a middleware has no route to read.
  return Object.assign(middleware, { serves: [...paths] });
}

function readMetadata(options: Parameters<typeof protectedResourceMetadata>[0]): object {
  const names = ['resource', 'authorizationServers', 'scopes', 'dpop', 'mtls'] as const;
  const read = readOptions('protectedResourceMetadata', options, names);
  const resource = read.string('resource') ?? '';
  if (!/^https?:\/\/[^#]+$/.test(resource) || !URL.canParse(resource) || hasUserInfo(resource)) {
    return read.refuse('resource', 'an http(s) URL without a fragment, user name and password');
  }
  const servers = options.authorizationServers;
  if (!Array.isArray(servers) || servers.length === 0 || !servers.every((server) => typeof server === 'string')) {
    read.refuse('authorizationServers', 'an array of at least one issuer');
  }
  const { scopes, dpop, mtls } = ownMembers(options);
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every(isScopeToken))) {
    read.refuse('scopes', 'an array of scopes');
  }
  return {
    resource,
    authorization_servers: servers,
    bearer_methods_supported: ['header'],
    ...(scopes && { scopes_supported: scopes }),
    ...(dpop && ofDpop(readDpop('protectedResourceMetadata', dpop, resource))),
    ...(mtls && readMtls('protectedResourceMetadata', mtls) && { tls_client_certificate_bound_access_tokens: true }),
  };
}

function ofDpop({ algorithms, required }: DpopSettings): object {
  return { dpop_signing_alg_values_supported: algorithms, dpop_bound_access_tokens_required: required };
}

function pathOfResource(resource: string): string {
  return new URL(resource).pathname.replace(/\/$/, '');
}
