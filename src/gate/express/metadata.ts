import type { ServerResponse } from 'node:http';
import { isObject } from '../core/objects';
import { isList, option, readOptions, refuseOption } from '../core/options';
import type { TableOf } from '../core/options';
import { hasUserInfo, isHttpUrl, isSecureUrl } from '../core/urls';
import { gateOf } from '../gate/verifier';
import { sendProblem } from './respond';
import type { GateRequest, Middleware, Next } from './request-state';
import { isScopeToken } from '../token/scopes';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/**
 * URL of the metadata of a resource: the well-known part goes between host and path, and the path and query are kept,
 * except for a slash that is the whole path (RFC 9728 section 3.1).
 */
export function resourceMetadataUrl(resource: string): string {
  const { origin, pathname, search } = new URL(resource);
  return `${origin}${WELL_KNOWN}${pathname === '/' ? '' : pathname}${search}`;
}

/**
 * Makes the middleware that serves the protected resource metadata (RFC 9728): from it a client that knows only the
 * API's URL learns the authorization server. Pages of any origin may read it. Mount it at the root of the app, before
 * any gate.
 *
 * @throws TypeError when an option is wrong
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { authenticate, protectedResourceMetadata } from 'tillgate';
 *
 * const gate = authenticate({
 *   issuer: 'https://login.example.com',
 *   audience: 'https://api.example.com',
 *   resource: 'https://api.example.com',
 * });
 * const app = express();
 * app.use(protectedResourceMetadata({ gate, scopes: ['orders:read'], resourceName: 'Orders' }));
 * app.use('/v1', gate);
 * ```
 */
export function protectedResourceMetadata(
  options: {
    /** Scopes that the API knows. Default: not published. */
    readonly scopes?: readonly string[] | undefined;
    /** `resource_name`: the name of the API for people. Default: not published. */
    readonly resourceName?: string | undefined;
    /** Further members (RFC 9728 section 2), such as `resource_documentation`. Default: none. */
    readonly members?: Readonly<Record<string, unknown>> | undefined;
    /** Lets the resource and the issuers be `http:` on another host than loopback. Default: as the gate has it, else `false`. */
    readonly allowHttp?: boolean | undefined;
  } & (
    | {
        /** What `authenticate()` returned. Resource, issuers and how tokens are bound are those of its options. */
        readonly gate: Middleware;
        readonly resource?: undefined;
        readonly authorizationServers?: undefined;
      }
    | {
        readonly gate?: undefined;
        /** Public URL of the API: https, or http on loopback, without a fragment. */
        readonly resource: string;
        /** Issuers whose tokens are accepted. */
        readonly authorizationServers: readonly string[];
      }
  ),
): Middleware {
  const metadata = readMetadata(options);
  const body = Buffer.from(JSON.stringify(metadata));
  const { pathname, search } = new URL(resourceMetadataUrl(metadata.resource));

  /** Of a resource with a query only its own URL; else any query, and without the path, for clients that leave it out. */
  function isServedAt(url: string): boolean {
    const [path = ''] = url.split('?', 1);
    if (path === pathname && search !== '') return url.slice(path.length) === search;
    return path === pathname || path === WELL_KNOWN;
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
  return Object.assign(protectedResourceMetadata as Middleware, { serves: [...new Set([WELL_KNOWN, pathname])] });
}

const METHODS = 'GET, HEAD, OPTIONS';
const PREFLIGHT = [
  ['Allow', METHODS],
  ['Access-Control-Allow-Methods', 'GET, HEAD'],
  // Clients send headers of their own, such as MCP-Protocol-Version.
  ['Access-Control-Allow-Headers', '*'],
  ['Access-Control-Max-Age', '86400'],
] as const;

const RESOURCE = 'an https: URL (http: on loopback, or with allowHttp) without a fragment, user name and password';
const ISSUER = 'an https: URL (http: on loopback, or with allowHttp) without a query and a fragment';

const FACTORY = 'protectedResourceMetadata';
const OF_GATE = ['resource', 'authorizationServers'] as const;

const METADATA_OPTIONS = {
  gate: option('what authenticate() returned', (given) => gateOf(given as object)?.settings),
  scopes: option('an array of scopes', (given) => {
    const fits = isList(given) && given.every((scope) => typeof scope === 'string' && isScopeToken(scope));
    return fits ? given : undefined;
  }),
  resourceName: option.string(),
  members: option('an object', (given) => (isObject(given) ? given : undefined), {}),
  // The default is that of the gate; the two after it are checked with it.
  allowHttp: option.boolean(),
  resource: option(RESOURCE, (given) => given),
  authorizationServers: option(ISSUER, (given) => given),
} satisfies TableOf<Parameters<typeof protectedResourceMetadata>[0]>;

function readMetadata(options: Parameters<typeof protectedResourceMetadata>[0]): { readonly resource: string } {
  const given = readOptions(FACTORY, options, METADATA_OPTIONS);
  const { gate, scopes, resourceName, members } = given;
  const stray = gate && OF_GATE.find((key) => given[key] !== undefined);
  if (gate && gate.resource === undefined) refuse('gate', 'a gate with the option "resource"', options.gate);
  if (stray) throw new TypeError(`${FACTORY}(): give "gate" or "${stray}", not both`);
  const allowHttp = given.allowHttp ?? gate?.allowHttp ?? false;
  const resource = gate?.resource ?? given.resource;
  if (!isPlainUrl(resource, allowHttp) || resource.includes('#')) {
    return gate
      ? refuse('gate', `a gate whose resource is ${RESOURCE}`, options.gate)
      : refuse('resource', RESOURCE, resource);
  }
  const servers = gate ? gate.issuers.map(({ issuer }) => issuer) : given.authorizationServers;
  if (!isList(servers) || servers.length === 0 || !servers.every((server) => isIssuerUrl(server, allowHttp))) {
    if (gate) refuse('gate', `a gate whose issuers are ${ISSUER}`, options.gate);
    return refuse('authorizationServers', `an array of at least one issuer, each ${ISSUER}`, servers);
  }
  const confirmations = gate?.possession.map(({ confirmation }) => confirmation) ?? [];
  const own = {
    resource,
    resource_name: resourceName,
    authorization_servers: servers,
    bearer_methods_supported: ['header'],
    scopes_supported: scopes,
    dpop_signing_alg_values_supported: gate?.challenges[0]?.algorithms,
    dpop_bound_access_tokens_required: confirmations.includes('jkt')
      ? gate?.possessionRequired === true && confirmations.length === 1
      : undefined,
    tls_client_certificate_bound_access_tokens: confirmations.includes('x5t#S256') || undefined,
  };
  const taken = Object.keys(members).find((name) => Object.hasOwn(own, name));
  if (taken) throw new TypeError(`${FACTORY}(): "${taken}" must not be among "members"`);
  const isPresent = ([, value]: [string, unknown]): boolean =>
    // RFC 9728 section 3.2: a list without elements must be left out.
    value !== undefined && !(isList(value) && value.length === 0);
  return { resource, ...Object.fromEntries(Object.entries({ ...own, ...members }).filter(isPresent)) };
}

function refuse(name: keyof typeof METADATA_OPTIONS, expected: string, given: unknown): never {
  return refuseOption({ factory: FACTORY, name }, expected, given);
}

function isPlainUrl(url: unknown, allowHttp: boolean): url is string {
  if (typeof url !== 'string' || !isHttpUrl(url) || hasUserInfo(url)) return false;
  return allowHttp || isSecureUrl(url);
}

/** RFC 8414 section 2. */
function isIssuerUrl(url: unknown, allowHttp: boolean): boolean {
  return isPlainUrl(url, allowHttp) && !/[?#]/.test(url);
}
