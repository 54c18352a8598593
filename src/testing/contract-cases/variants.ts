import { isObject } from '../../core/objects';
import type { LocatedOperation } from '../../openapi/document';
import { dereference } from '../../openapi/document';
import type { TestToken } from '../test-token';
import type { TokenTransport } from './credentials';
import type { ApiRequest } from './responses';

/** Another form of the request of an operation; without a sufficient token it must stay closed. */
export interface Variant {
  /** For messages: `with X-Original-URL: /health`. */
  readonly name: string;
  readonly change: (request: ApiRequest) => ApiRequest;
}

/** What the rules are applied to. */
export interface VariantSubject {
  readonly document: object;
  readonly operation: LocatedOperation;
  /** Path and query of the request. */
  readonly target: string;
  /** Methods that the document has for the path. */
  readonly methods: readonly string[];
  /** Path of an operation that anybody may call. */
  readonly publicPath: string;
  readonly isFull: boolean;
}

/** One class of attacks: a rule that derives requests from an operation. */
interface VariantClass {
  /** `GET /orders stays closed ...` */
  readonly name: string;
  readonly variants: (subject: VariantSubject) => readonly Variant[];
}

/** Spellings of a path that Express, proxies and other routers may take for the same one. */
const SPELLINGS: readonly (readonly [quick: boolean, respell: (path: string, publicPath: string) => string])[] = [
  [true, (path) => `${path}/`],
  [true, (path) => `/${path}`],
  [true, (path) => path.toUpperCase()],
  [true, (path) => path.replace(/\/[^/]*$/, (end) => `/.${end}`)],
  [true, (path) => path.replace(/[a-z](?=[^/]*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`)],
  [true, (path, open) => `${open}/..${path}`],
  [true, (path) => path.replace(/\/v\d+(?=\/)/, '')],
  [true, (path) => `${path}.json`],
  [false, (path) => `${path}//`],
  [false, (path) => path.replace(/\/(?=[^/]*$)/, '//')],
  [false, (path) => path.replace(/\/(?=.)/g, '//')],
  [false, (path) => path.replace(/[a-z]/, (letter) => letter.toUpperCase())],
  [false, (path) => path.replace(/[a-z](?=[^/]*$)/, (letter) => letter.toUpperCase())],
  [false, (path) => path.replace(/[a-z](?=[^/]*$)/, (letter) => `%25${letter.charCodeAt(0).toString(16)}`)],
  [false, (path) => path.replace(/\/[a-z]/, (text) => `/%${text.charCodeAt(1).toString(16)}`)],
  [false, (path) => path.replace(/\/(?=[^/]*$)/, '%2f')],
  [false, (path) => path.replace(/\/(?=[^/]*$)/, '%2F')],
  [false, (path) => path.replace(/\/(?=[^/]*$)/, '%252f')],
  [false, (path) => path.replace(/\/(?=[^/]*$)/, '\\')],
  [false, (path) => path.replace(/\/(?=[^/]*$)/, '%5c')],
  [false, (path) => `/.${path}`],
  [false, (path) => `/x/..${path}`],
  [false, (path) => path.replace(/\/[^/]*$/, (end) => `/x/..${end}`)],
  [false, (path) => path.replace(/\/[^/]*$/, (end) => `/x/%2e%2e${end}`)],
  [false, (path) => path.replace(/\/[^/]*$/, (end) => `/%2e${end}`)],
  [false, (path) => `${path}/.`],
  [false, (path) => `${path}/x/..`],
  [false, (path) => `${path}/..;/${path.split('/').at(-1) ?? ''}`],
  [false, (path) => `${path};`],
  [false, (path) => `${path};a=b`],
  [false, (path) => path.replace(/^\/[^/]+/, (start) => `${start};a=b`)],
  [false, (path) => path.replace(/\/(?=[^/]*$)/, '/;/')],
  [false, (path) => `${path}%00`],
  [false, (path) => `${path}%20`],
  [false, (path) => `${path}%09`],
  [false, (path) => `${path}%0a`],
  [false, (path) => `${path}%0d%0a`],
  [false, (path) => `${path}%3f`],
  [false, (path) => `${path}%23`],
  [false, (path) => `${path}/%23`],
  [false, (path) => `${path}.`],
  [false, (path) => `${path}~`],
  [false, (path) => `${path}*`],
  [false, (path) => `${path}.xml`],
  [false, (path) => `${path}.html`],
  [false, (path) => `${path}.css`],
  [false, (path) => `${path}.js`],
  [false, (path) => `${path}/x.css`],
  [false, (path) => `${path}/favicon.ico`],
  [false, (path) => `${path}%2fx.css`],
  [false, (path) => `${path};x.css`],
  [false, (path, open) => `${open}/%2e%2e${path}`],
  [false, (path, open) => `${open}/..%2f${path.slice(1)}`],
  [false, (path, open) => `${open}/..;${path}`],
  [false, (path, open) => `${open}/../..${path}`],
  [false, (path, open) => `${open}${path}`],
  [false, (path, open) => `${path}?path=${open}`],
  [false, (path, open) => `${path}?${open}`],
  [false, (path, open) => `${path}?${open.slice(1)}`],
  [false, (path) => `${path}?x=.css`],
  [false, (path) => `${path}?public=true&internal=1&debug=1&admin=true&preview=1`],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, (_, version: string) => `/v${Number(version) + 1}`)],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, (_, version: string) => `/v${Number(version) - 1}`)],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, '/v0')],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, '/v$1.0')],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, '/V$1')],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, '/latest')],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, '/internal')],
  [false, (path) => `/api${path}`],
  [false, (path) => `/internal${path}`],
  [false, (path) => `/public${path}`],
  [false, (path) => `http://localhost${path}`],
];

/** Headers that proxies and frameworks set, and that callers can set too where nothing removes them. */
const HEADERS: readonly (readonly [quick: boolean, name: string, value: (subject: VariantSubject) => string])[] = [
  [true, 'X-Original-URL', ({ publicPath }) => publicPath],
  [true, 'X-Forwarded-For', () => '127.0.0.1'],
  [true, 'X-Forwarded-User', () => 'admin'],
  [true, 'X-Internal', () => '1'],
  [false, 'X-Rewrite-URL', ({ publicPath }) => publicPath],
  [false, 'X-Original-URL', ({ target }) => target],
  [false, 'X-Forwarded-Prefix', ({ publicPath }) => publicPath],
  [false, 'X-Forwarded-Uri', ({ publicPath }) => publicPath],
  [false, 'X-Forwarded-Path', ({ publicPath }) => publicPath],
  [false, 'X-Real-IP', () => '127.0.0.1'],
  [false, 'X-Client-IP', () => '127.0.0.1'],
  [false, 'X-Custom-IP-Authorization', () => '127.0.0.1'],
  [false, 'X-Originating-IP', () => '127.0.0.1'],
  [false, 'X-Remote-Addr', () => '10.0.0.1'],
  [false, 'Forwarded', () => 'for=127.0.0.1;host=localhost'],
  [false, 'True-Client-IP', () => '127.0.0.1'],
  [false, 'X-Forwarded-Host', () => 'localhost'],
  [false, 'X-Forwarded-Proto', () => 'https'],
  [false, 'Host', () => 'localhost'],
  [false, 'X-Remote-User', () => 'admin'],
  [false, 'Remote-User', () => 'admin'],
  [false, 'X-User', () => 'admin'],
  [false, 'X-User-Id', () => '1'],
  [false, 'X-User-Role', () => 'admin'],
  [false, 'X-Role', () => 'admin'],
  [false, 'X-Roles', () => 'admin'],
  [false, 'X-Admin', () => 'true'],
  [false, 'X-Authenticated', () => 'true'],
  [false, 'X-Authenticated-User', () => 'admin'],
  [false, 'X-Authenticated-Userid', () => 'admin'],
  [false, 'X-Authenticated-Scope', (subject) => scopesOf(subject)],
  [false, 'X-Consumer-Username', () => 'admin'],
  [false, 'X-Client-Id', () => 'contract-cases'],
  [false, 'X-Scope', (subject) => scopesOf(subject)],
  [false, 'X-Scopes', (subject) => scopesOf(subject)],
  [false, 'X-Token-Scopes', (subject) => scopesOf(subject)],
  [false, 'X-Token-Payload', (subject) => Buffer.from(JSON.stringify({ scope: scopesOf(subject) })).toString('base64')],
  [false, 'X-Jwt-Claims', (subject) => JSON.stringify({ sub: 'admin', scope: scopesOf(subject) })],
  [false, 'X-Userinfo', (subject) => Buffer.from(JSON.stringify({ scope: scopesOf(subject) })).toString('base64')],
  [false, 'X-Internal-Request', () => 'true'],
  [false, 'X-Internal-Service', () => 'true'],
  [false, 'X-Envoy-Internal', () => 'true'],
  [false, 'X-Forwarded-Client-Cert', () => 'By=spiffe://local;Subject="CN=admin"'],
  [false, 'X-SSL-Client-Verify', () => 'SUCCESS'],
  [false, 'X-Debug', () => '1'],
  [false, 'X-Test', () => '1'],
  [false, 'X-Bypass-Auth', () => '1'],
  [false, 'X-Skip-Auth', () => 'true'],
  [false, 'X-No-Auth', () => '1'],
  [false, 'X-Middleware-Subrequest', () => 'middleware:middleware:middleware:middleware:middleware'],
  [
    false,
    'X-Middleware-Subrequest',
    () => 'src/middleware:src/middleware:src/middleware:src/middleware:src/middleware',
  ],
  [false, 'X-Health-Check', () => '1'],
  [false, 'X-Cron', () => 'true'],
  [false, 'X-Requested-With', () => 'XMLHttpRequest'],
  [false, 'X-Api-Key', () => 'test'],
  [false, 'User-Agent', () => 'kube-probe/1.31'],
  [false, 'User-Agent', () => 'ELB-HealthChecker/2.0'],
  [false, 'User-Agent', () => 'GoogleHC/1.0'],
  [false, 'Referer', () => 'http://localhost/'],
  [false, 'Origin', () => 'http://localhost'],
  [false, 'Origin', () => 'null'],
  [false, 'Purpose', () => 'prefetch'],
  [false, 'Sec-Fetch-Site', () => 'same-origin'],
  [false, 'Upgrade', () => 'websocket'],
  [false, 'Connection', () => 'close, Authorization'],
  [false, 'If-None-Match', () => '*'],
  [false, 'If-Modified-Since', () => 'Fri, 01 Jan 2100 00:00:00 GMT'],
  [false, 'Range', () => 'bytes=0-9'],
  [false, 'Accept-Version', () => '0'],
];

const OVERRIDES = ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'];
const ALL_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY', 'PROPFIND', 'COPY', 'TRACE', 'OPTIONS'];

/** Places for a good token where none belongs (RFC 6750 section 2; RFC 9700 section 4.3.2). */
const PLACES: readonly (readonly [quick: boolean, name: string, place: (token: string) => TokenTransport])[] = [
  [true, 'a cookie', (token) => cookie('access_token', token)],
  [true, 'X-Access-Token', (token) => ({ headers: { 'x-access-token': token } })],
  [true, 'the query (token)', (token) => ({ query: `token=${token}` })],
  ...['token', 'jwt', 'id_token', 'session', 'auth', 'authorization', 'Authorization', 'bearer'].map(
    (name) => [false, `the cookie ${name}`, (token: string) => cookie(name, token)] as const,
  ),
  ...['X-Auth-Token', 'X-Authorization', 'X-Token', 'X-Jwt', 'X-Jwt-Assertion', 'X-Forwarded-Access-Token'].map(
    (name) => [false, name, (token: string) => ({ headers: { [name]: token } })] as const,
  ),
  ...['X-Authorization', 'X-Forwarded-Authorization', 'X-Original-Authorization', 'Proxy-Authorization'].map(
    (name) => [false, `${name} (Bearer)`, (token: string) => ({ headers: { [name]: `Bearer ${token}` } })] as const,
  ),
  ...['jwt', 'auth', 'bearer', 'auth_token', 'id_token', 'api_key', 'authorization', 'access_token[]'].map(
    (name) => [false, `the query (${name})`, (token: string) => ({ query: `${name}=${token}` })] as const,
  ),
  ...['Token', 'JWT', 'OAuth', 'Bearer:', 'Basic'].map(
    (scheme) => [false, `the scheme ${scheme}`, (token: string) => authorization(`${scheme} ${token}`)] as const,
  ),
  [false, 'no scheme', (token) => authorization(token)],
  [false, 'Basic credentials', (token) => authorization(`Basic ${Buffer.from(`x:${token}`).toString('base64')}`)],
  [false, 'a list of schemes', (token) => authorization(`Basic eDp5, Bearer ${token}`)],
  [false, 'quotes', (token) => authorization(`Bearer "${token}"`)],
  [false, 'a parameter of the scheme', (token) => authorization(`Bearer token=${token}`)],
];

/** Attacks by request: each row is a class, and derives its requests from the document. */
export const VARIANTS: Readonly<Record<string, VariantClass>> = {
  spelling: {
    name: 'under another spelling of its path',
    variants({ target, publicPath, isFull }) {
      const [path = '', query] = target.split('?', 2);
      const spellings = SPELLINGS.filter(([quick]) => quick || isFull).map(([, respell]) => respell(path, publicPath));
      return [...new Set(spellings)]
        .filter((spelling) => spelling !== path)
        .map((spelling) => {
          const separator = spelling.includes('?') ? '&' : '?';
          const other = query === undefined ? spelling : spelling + separator + query;
          return { name: `as ${other}`, change: (request) => ({ ...request, target: other }) };
        });
    },
  },
  method: {
    name: 'to another method',
    variants({ operation: { method }, methods, isFull }) {
      const others = ALL_METHODS.filter((one) => one !== method && !methods.includes(one));
      const carriers = isFull ? ['POST', 'GET', 'PUT', 'OPTIONS'] : ['POST'];
      return [
        ...(isFull ? others : others.slice(0, 2)).map((other) => ({
          name: `by ${other}`,
          change: (request: ApiRequest) => ({ ...request, method: other }),
        })),
        ...carriers.flatMap((carrier) => [
          ...(isFull ? OVERRIDES : OVERRIDES.slice(0, 1)).map((name) => ({
            name: `by ${carrier} with ${name}: ${method}`,
            change: (request: ApiRequest) => withHeaders({ ...request, method: carrier }, { [name]: method }),
          })),
          {
            name: `by ${carrier} with _method=${method}`,
            change: (request: ApiRequest) => withQuery({ ...request, method: carrier }, `_method=${method}`),
          },
        ]),
      ];
    },
  },
  header: {
    name: 'to headers that proxies and frameworks trust',
    variants: (subject) =>
      HEADERS.filter(([quick]) => quick || subject.isFull).map(([, name, value]) => ({
        name: `with ${name}: ${value(subject)}`,
        change: (request) => withHeaders(request, { [name]: value(subject) }),
      })),
  },
  variant: {
    name: 'to other parameters, bodies and media types',
    variants: (subject) => [...otherValues(subject), ...otherBodies(subject), ...otherTypes(subject)],
  },
};

/** Good tokens where they do not belong, except for schemes that the document has. */
export function misplacedTokens(document: object, isFull: boolean): typeof PLACES {
  const { components } = document as { readonly components?: { readonly securitySchemes?: unknown } };
  const schemes = isObject(components?.securitySchemes) ? Object.values(components.securitySchemes) : [];
  const documented = schemes.flatMap((one) => (isObject(one) ? [String(one['name']).toLowerCase()] : []));
  return PLACES.filter(
    ([quick, name]) => (quick || isFull) && !documented.some((one) => name.toLowerCase().includes(one)),
  );
}

/** Claims that hold the required scopes in a form that is not theirs; the token has no other scopes. */
export function scopeForms(scopes: readonly string[]): readonly (readonly [name: string, token: TestToken])[] {
  const all = scopes.join(' ');
  const parents = scopes.map((scope) => scope.split(/[:.]/)[0] ?? scope);
  const claim = (scope: unknown): TestToken => ({ claims: { scope } });
  return [
    ['a parent', claim(parents.join(' '))],
    ['a wildcard', claim('*')],
    ['a wildcard of its part', claim(parents.flatMap((one) => [`${one}:*`, `${one}.*`, `${one}:`]).join(' '))],
    ['a regular expression', claim('.* .+ ^.*$ %')],
    ['a comma in between', claim(`a,${scopes.join(',')},b`)],
    ['other separators', claim(scopes.flatMap((scope) => [`a+${scope}`, `a;${scope}`, `a|${scope}`]).join(' '))],
    ['quotes', claim(scopes.map((scope) => `"${scope}"`).join(' '))],
    ['another scope in front', claim(scopes.map((scope) => `no-${scope}`).join(' '))],
    ['a negation', claim(scopes.map((scope) => `!${scope}`).join(' '))],
    ['an object', claim(Object.fromEntries(scopes.map((scope) => [scope, true])))],
    ['true', claim(true)],
    ['a number', claim(1)],
    ['JSON', claim(JSON.stringify(scopes))],
    ['a role', { claims: { role: 'admin', roles: ['admin'], groups: ['admin'], admin: true } }],
    ['a requested scope', { claims: { requested_scope: all, scopes_supported: scopes } }],
  ];
}

function otherValues({ operation: { parameters }, isFull }: VariantSubject): readonly Variant[] {
  const optional = parameters.filter((one) => one.in === 'query' && !one.required);
  return (isFull ? optional : optional.slice(0, 2)).flatMap(({ name, schema }) => {
    const { enum: choices } = (schema ?? {}) as { readonly enum?: readonly unknown[] };
    const values = choices ?? ['true', '1', '*'];
    return (isFull ? values.slice(0, 8) : values.slice(0, 1)).map((value) => ({
      name: `with ${name}=${String(value)}`,
      change: (request: ApiRequest) => withQuery(request, `${name}=${encodeURIComponent(String(value))}`),
    }));
  });
}

function otherBodies({ operation: { operation }, document }: VariantSubject): readonly Variant[] {
  const requestBody = dereference(document, operation.requestBody);
  if (!isObject(requestBody)) return [];
  const types = isObject(requestBody['content']) ? Object.keys(requestBody['content']) : [];
  const others = [...types.slice(1), 'text/plain', 'application/x-www-form-urlencoded'];
  return [
    { name: 'with a broken body', change: (request) => ({ ...request, body: '{' }) },
    { name: 'without its body', change: (request) => ({ ...request, body: undefined }) },
    { name: 'with a list as its body', change: (request) => ({ ...request, body: `[${request.body ?? '{}'}]` }) },
    ...others.map((type) => ({
      name: `with a body of ${type}`,
      change: (request: ApiRequest) => withHeaders(request, { 'content-type': type }),
    })),
  ];
}

function otherTypes({ operation: { operation }, document, isFull }: VariantSubject): readonly Variant[] {
  const { responses } = operation as { readonly responses?: unknown };
  const documented = Object.values(isObject(responses) ? responses : {}).flatMap((one) => {
    const response = dereference(document, one);
    return isObject(response) && isObject(response['content']) ? Object.keys(response['content']) : [];
  });
  const usual = ['text/csv', 'text/html', 'application/xml', 'application/pdf', 'text/event-stream'];
  return [...new Set([...documented, ...(isFull ? usual : [])])].map((type) => ({
    name: `with Accept: ${type}`,
    change: (request) => withHeaders(request, { accept: type }),
  }));
}

function scopesOf({ operation: { security } }: VariantSubject): string {
  return [...new Set(security.flat())].join(' ');
}

function withHeaders(request: ApiRequest, headers: Readonly<Record<string, string>>): ApiRequest {
  return { ...request, headers: { ...request.headers, ...headers } };
}

function withQuery(request: ApiRequest, query: string): ApiRequest {
  return { ...request, target: `${request.target}${request.target.includes('?') ? '&' : '?'}${query}` };
}

function cookie(name: string, token: string): TokenTransport {
  return { headers: { cookie: `${name}=${token}` } };
}

function authorization(value: string): TokenTransport {
  return { headers: { authorization: value } };
}
