import type { ServerResponse } from 'node:http';
import { isObject, ownMembers } from '../core/objects';
import { isList, readOptions } from '../core/options';
import type { OptionReader } from '../core/options';
import { hasUserInfo, isSecureUrl } from '../core/urls';
import { gateOf } from '../gate/gate';
import { sendProblem } from './respond';
import type { GateRequest, Middleware, Next } from './request';
import { readMtls } from '../token/possession/client-certificate';
import type { MtlsOptions } from '../token/possession/client-certificate';
import { readDpop } from '../token/possession/dpop-options';
import type { DpopOptions } from '../token/possession/dpop-options';
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
        readonly dpop?: undefined;
        readonly mtls?: undefined;
      }
    | {
        readonly gate?: undefined;
        /** Public URL of the API: https, or http on loopback, without a fragment. */
        readonly resource: string;
        /** Issuers whose tokens are accepted. */
        readonly authorizationServers: readonly string[];
        /** The option `dpop` of the gate: its algorithms are published, and whether it is required. */
        readonly dpop?: DpopOptions | undefined;
        /** The option `mtls` of the gate: that certificate-bound tokens are accepted is published. */
        readonly mtls?: MtlsOptions | undefined;
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

const OF_GATE = ['resource', 'authorizationServers', 'dpop', 'mtls'] as const;
const KEYS = ['gate', 'scopes', 'resourceName', 'members', 'allowHttp', ...OF_GATE] as const;
type Key = (typeof KEYS)[number];

function readMetadata(options: Parameters<typeof protectedResourceMetadata>[0]): { readonly resource: string } {
  const read: OptionReader<Key> = readOptions('protectedResourceMetadata', options, KEYS);
  const { gate, scopes, members = {}, ...given } = ownMembers(options);
  const facts = gate === undefined ? undefined : gateOf(gate)?.settings;
  if (gate !== undefined) {
    if (!facts) read.refuse('gate', 'what authenticate() returned');
    if (facts.resource === undefined) read.refuse('gate', 'a gate with the option "resource"');
    const stray = OF_GATE.find((key) => given[key] !== undefined);
    if (stray) throw new TypeError(`protectedResourceMetadata(): give "gate" or "${stray}", not both`);
  }
  const allowHttp = read.boolean('allowHttp', facts?.allowHttp ?? false);
  const resource = facts?.resource ?? read.string('resource') ?? '';
  if (!isPlainUrl(resource, allowHttp) || resource.includes('#')) {
    read.refuse(facts ? 'gate' : 'resource', `${facts ? 'a gate whose resource is ' : ''}${RESOURCE}`);
  }
  const servers: unknown = facts?.issuers.map(({ issuer }) => issuer) ?? given.authorizationServers;
  if (!isList(servers) || servers.length === 0 || !servers.every((server) => isIssuerUrl(server, allowHttp))) {
    if (facts) read.refuse('gate', `a gate whose issuers are ${ISSUER}`);
    read.refuse('authorizationServers', `an array of at least one issuer, each ${ISSUER}`);
  }
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every(isScopeToken))) {
    read.refuse('scopes', 'an array of scopes');
  }
  if (!isObject(members)) read.refuse('members', 'an object');
  const dpop = facts ? facts.dpop : given.dpop && readDpop('protectedResourceMetadata', given.dpop, resource);
  const mtls = facts ? facts.mtls : given.mtls && readMtls('protectedResourceMetadata', given.mtls);
  const own = {
    resource,
    resource_name: read.string('resourceName'),
    authorization_servers: servers,
    bearer_methods_supported: ['header'],
    scopes_supported: scopes,
    dpop_signing_alg_values_supported: dpop?.algorithms,
    dpop_bound_access_tokens_required: dpop?.required,
    tls_client_certificate_bound_access_tokens: mtls && true,
  };
  const taken = Object.keys(members).find((name) => Object.hasOwn(own, name));
  if (taken) throw new TypeError(`protectedResourceMetadata(): "${taken}" must not be among "members"`);
  const isPresent = ([, value]: [string, unknown]): boolean =>
    // RFC 9728 section 3.2: a list without elements must be left out.
    value !== undefined && !(isList(value) && value.length === 0);
  return { resource, ...Object.fromEntries(Object.entries({ ...own, ...members }).filter(isPresent)) };
}

const RESOURCE = 'an https: URL (http: on loopback, or with allowHttp) without a fragment, user name and password';
const ISSUER = 'an https: URL (http: on loopback, or with allowHttp) without a query and a fragment';

function isPlainUrl(url: unknown, allowHttp: boolean): url is string {
  if (typeof url !== 'string' || !/^https?:\/\//.test(url) || !URL.canParse(url) || hasUserInfo(url)) return false;
  return allowHttp || isSecureUrl(url);
}

/** RFC 8414 section 2. */
function isIssuerUrl(url: unknown, allowHttp: boolean): boolean {
  return isPlainUrl(url, allowHttp) && !/[?#]/.test(url);
}
