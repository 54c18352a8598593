import { attempt, isObject } from 'tillgate/internal';
import { dereference } from '../openapi/document';
import type { Parameter } from '../openapi/document';
import { base64, together, withCookie, withHeaders, withQuery } from './requests';
import type { Variant } from './requests';
import type { ApiRequest } from './responses';
import { bodyAs } from './samples';
import type { Subject } from './subject';

/** One class of attacks: a rule that derives requests from an operation. */
export interface VariantClass {
  /** `GET /orders stays closed ...` */
  readonly name: string;
  readonly variants: (subject: Subject) => readonly Variant[];
}

/** Headers that one request has at most: servers limit their sum. */
const GROUP = 12;

type Header = readonly [name: string, value: (subject: Subject) => string];

/** Texts at the end of a path, and in place of its last slash. */
const ENDINGS =
  '// /. /x/.. ; ;a=b %00 %20 %09 %0a %0d%0a %3f %23 /%23 . ~ * .xml .html .css .js /x.css /favicon.ico %2fx.css ;x.css ?x=.css'.split(
    ' ',
  );
const SLASHES = '// %2f %2F %252f \\ %5c /;/'.split(' ');

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
  ...ENDINGS.map((end) => [false, (path: string) => path + end] as const),
  ...SLASHES.map((slash) => [false, (path: string) => path.replace(/\/(?=[^/]*$)/, () => slash)] as const),
  [false, (path) => path.replace(/\/(?=.)/g, '//')],
  [false, (path) => path.replace(/[a-z]/, (letter) => letter.toUpperCase())],
  [false, (path) => path.replace(/[a-z](?=[^/]*$)/, (letter) => letter.toUpperCase())],
  [false, (path) => path.replace(/[a-z](?=[^/]*$)/, (letter) => `%25${letter.charCodeAt(0).toString(16)}`)],
  [false, (path) => path.replace(/\/[a-z]/, (text) => `/%${text.charCodeAt(1).toString(16)}`)],
  [false, (path) => `/.${path}`],
  [false, (path) => `/x/..${path}`],
  [false, (path) => path.replace(/\/[^/]*$/, (end) => `/x/..${end}`)],
  [false, (path) => path.replace(/\/[^/]*$/, (end) => `/x/%2e%2e${end}`)],
  [false, (path) => path.replace(/\/[^/]*$/, (end) => `/%2e${end}`)],
  [false, (path) => `${path}/..;/${path.split('/').at(-1) ?? ''}`],
  [false, (path) => path.replace(/^\/[^/]+/, (start) => `${start};a=b`)],
  [false, (path, open) => `${open}/%2e%2e${path}`],
  [false, (path, open) => `${open}/..%2f${path.slice(1)}`],
  [false, (path, open) => `${open}/..;${path}`],
  [false, (path, open) => `${open}/../..${path}`],
  [false, (path, open) => `${open}${path}`],
  [false, (path, open) => `${path}?path=${open}`],
  [false, (path, open) => `${path}?${open}`],
  [false, (path, open) => `${path}?${open.slice(1)}`],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, (_, version: string) => `/v${Number(version) + 1}`)],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, (_, version: string) => `/v${Number(version) - 1}`)],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, '/v0')],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, '/v$1.0')],
  [false, (path) => path.replace(/\/v(\d+)(?=\/)/, '/V$1')],
  [false, (path) => `/api${path}`],
  [false, (path) => `http://localhost${path}`],
];

/** Headers that change what a proxy or framework does with a request: those of one row go together. */
const ROUTING_HEADERS: readonly (readonly [quick: boolean, names: string, value: Header[1]])[] = [
  [true, 'X-Original-URL X-Rewrite-URL', ({ api }) => api.publicPath],
  [false, 'X-Forwarded-Prefix X-Forwarded-Uri X-Forwarded-Path', ({ api }) => api.publicPath],
  [false, 'X-Original-URL', ({ operation }) => operation.request().target],
  [false, 'X-Forwarded-Host Host', () => 'localhost'],
  [false, 'X-Api-Key', () => 'test'],
  [false, 'Origin', () => 'http://localhost'],
  [false, 'Origin', () => 'null'],
  [false, 'Connection', () => 'close, Authorization'],
  [false, 'If-None-Match', () => '*'],
  [false, 'If-Modified-Since', () => 'Fri, 01 Jan 2100 00:00:00 GMT'],
  [false, 'Range', () => 'bytes=0-9'],
  [false, 'Accept-Version', () => '0'],
];

/** Headers that proxies set to say who calls, and that callers can set too where nothing removes them. */
const TRUSTED_HEADERS: readonly (readonly [names: string, value: Header[1]])[] = [
  ['X-Forwarded-For X-Real-IP X-Client-IP X-Custom-IP-Authorization', () => '127.0.0.1'],
  ['X-Originating-IP True-Client-IP', () => '127.0.0.1'],
  ['X-Remote-Addr', () => '10.0.0.1'],
  ['Forwarded', () => 'for=127.0.0.1;host=localhost'],
  ['X-Forwarded-Proto', () => 'https'],
  ['X-Forwarded-User X-Remote-User Remote-User X-User X-Authenticated-User X-Authenticated-Userid', () => 'admin'],
  ['X-Consumer-Username X-User-Role X-Role X-Roles', () => 'admin'],
  ['X-Internal X-Debug X-Test X-Bypass-Auth X-No-Auth X-Health-Check X-User-Id', () => '1'],
  ['X-Admin X-Authenticated X-Internal-Request X-Internal-Service X-Envoy-Internal', () => 'true'],
  ['X-Skip-Auth X-Cron', () => 'true'],
  ['X-Scope X-Scopes X-Token-Scopes X-Authenticated-Scope', (subject) => scopesOf(subject)],
  ['X-Client-Id', () => 'contract-cases'],
  ['X-Token-Payload X-Userinfo', (subject) => base64(JSON.stringify({ scope: scopesOf(subject) }))],
  ['X-Jwt-Claims', (subject) => JSON.stringify({ sub: 'admin', scope: scopesOf(subject) })],
  ['X-Forwarded-Client-Cert', () => 'By=spiffe://local;Subject="CN=admin"'],
  ['X-SSL-Client-Verify', () => 'SUCCESS'],
  ['X-Middleware-Subrequest', () => Array.from({ length: 5 }, () => 'middleware').join(':')],
  ['X-Middleware-Subrequest', () => Array.from({ length: 5 }, () => 'src/middleware').join(':')],
  ['X-Requested-With', () => 'XMLHttpRequest'],
  ['User-Agent', () => 'kube-probe/1.31'],
  ['User-Agent', () => 'ELB-HealthChecker/2.0'],
  ['User-Agent', () => 'GoogleHC/1.0'],
  ['Referer', () => 'http://localhost/'],
  ['Purpose', () => 'prefetch'],
  ['Sec-Fetch-Site', () => 'same-origin'],
];

const OVERRIDES = ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'];
/** Those that change something are another case. */
const READS = ['HEAD', 'GET', 'OPTIONS', 'QUERY', 'PROPFIND', 'COPY', 'TRACE'];

/** Attacks by request: each row is a class, and derives its requests from the document. */
export const VARIANTS: Readonly<Record<string, VariantClass>> = {
  spelling: {
    name: 'under another spelling of its path',
    variants({ operation, api: { publicPath, isFull } }) {
      const [path = '', query] = operation.request().target.split('?', 2);
      const spellings = SPELLINGS.filter(([quick]) => quick || isFull).map(([, respell]) => respell(path, publicPath));
      return [...new Set(spellings)]
        .filter((spelling) => spelling !== path)
        .map((spelling) => {
          const separator = spelling.includes('?') ? '&' : '?';
          const other = query === undefined ? spelling : spelling + separator + query;
          return { name: `as ${other}`, isElsewhere: true, change: (request) => ({ ...request, target: other }) };
        });
    },
  },
  method: {
    name: 'to another method',
    variants({ operation: { method, path }, api }) {
      const { isFull } = api;
      const methods = api.methodsOf(path);
      const others = READS.filter((one) => one !== method && !methods.includes(one));
      const carriers = isFull ? ['POST', 'GET', 'PUT', 'OPTIONS'] : ['POST'];
      const variants = [
        ...(isFull ? others : others.slice(0, 2)).map((other) => ({
          name: `by ${other}`,
          change: (request: ApiRequest) => ({ ...request, method: other }),
        })),
        ...carriers.map((carrier) =>
          together([
            ...OVERRIDES.map((name) => ({
              name: `by ${carrier} with ${name}: ${method}`,
              change: (request: ApiRequest) => withHeaders({ ...request, method: carrier }, { [name]: method }),
            })),
            {
              name: `by ${carrier} with _method=${method}`,
              change: (request: ApiRequest) => withQuery({ ...request, method: carrier }, `_method=${method}`),
            },
          ]),
        ),
        ...(method === 'GET' || method === 'POST' ? [] : overriddenInBody(method)),
      ];
      return variants.map((one) => ({ ...one, isElsewhere: true }));
    },
  },
  header: {
    name: 'to headers that proxies and frameworks trust',
    variants(subject) {
      const toVariant = ([name, value]: Header): Variant => ({
        name: `with ${name}: ${value(subject)}`,
        change: (request) => withHeaders(request, { [name]: value(subject) }),
      });
      const toHeaders = (names: string, value: Header[1]) => names.split(' ').map((name): Header => [name, value]);
      const routing = ROUTING_HEADERS.filter(([quick]) => quick || subject.api.isFull);
      const trusted = inGroups(TRUSTED_HEADERS.flatMap((row) => toHeaders(...row)));
      return [
        ...routing.map(([, ...row]) => ({ ...together(toHeaders(...row).map(toVariant)), isElsewhere: true })),
        ...trusted.map((some) => together(some.map(toVariant))),
      ];
    },
  },
  variant: {
    name: 'to other parameters, bodies and media types',
    variants: (subject) => [...otherValues(subject), ...otherBodies(subject), ...otherTypes(subject)],
  },
};

/** A POST whose body names the method that some frameworks then use. */
function overriddenInBody(method: string): readonly Variant[] {
  const withMethod = ({ body = '{}' }: ApiRequest): string => {
    const members = attempt((): unknown => JSON.parse(body));
    return JSON.stringify({ ...(isObject(members) && members), _method: method });
  };
  return [
    {
      name: `by POST with _method=${method} in a form`,
      change: (request) => ({
        ...withHeaders(request, { 'content-type': 'application/x-www-form-urlencoded' }),
        ...{ method: 'POST', body: `_method=${method}` },
      }),
    },
    {
      name: `by POST with _method=${method} in its body`,
      change: (request) => ({
        ...withHeaders(request, { 'content-type': 'application/json' }),
        ...{ method: 'POST', body: withMethod(request) },
      }),
    },
  ];
}

/** Names that APIs have for other forms of a response, also where their document does not say so. */
const USUAL =
  'fields=* include=* expand=* embed=* limit=1 page=1 format=json view=full debug=true admin=true preview=true public=true all=true callback=f';
const QUICK_VALUES = 3;
const FULL_VALUES = 8;

/** Each optional parameter and header with each of its values: one by one, or the first of all of them, the second, the third. */
function otherValues({ operation: { parameters }, api: { isFull } }: Subject): readonly Variant[] {
  const known = parameters.map(({ name }) => name);
  const values = parameters
    .filter(
      ({ in: place, required, name }) => place !== 'path' && !required && !/^(authorization|content-type)$/i.test(name),
    )
    .map((one) =>
      choicesOf(one)
        .slice(0, isFull ? FULL_VALUES : QUICK_VALUES)
        .map((value) => withParameter(one, value)),
    );
  const usual = USUAL.split(' ').filter((one) => !known.includes(one.split('=', 1)[0] ?? ''));
  const asked = usual.map((one) => ({
    name: `with ?${one}`,
    change: (request: ApiRequest) => withQuery(request, one),
  }));
  const prefer = ['return=representation', 'respond-async'].map((one) =>
    withParameter({ name: 'Prefer', in: 'header' }, one),
  );
  const rows = Array.from({ length: QUICK_VALUES }, (_, at) => values.flatMap((all) => all[at] ?? []));
  const documented = isFull ? values.flat() : rows.filter((row) => row.length > 0).map(together);
  const twice = parameters.filter(({ in: place }) => place === 'query').map(({ name }) => sentTwice(name));
  return [
    ...documented,
    ...(twice.length > 0 ? [together(twice)] : []),
    together([...asked, ...prefer.slice(0, 1)]),
    ...prefer.slice(1),
  ];
}

/** A guard may read the first value, the handler the second, or a list where the document has none. */
function sentTwice(name: string): Variant {
  const own = encodeURIComponent(name);
  return { name: `with ${name} twice`, change: (request) => withQuery(request, `${own}=1&${own}=2`) };
}

function choicesOf({ schema = {} }: Parameter): readonly unknown[] {
  const {
    enum: choices,
    type,
    items,
  } = schema as { enum?: readonly unknown[]; type?: unknown; items?: { enum?: readonly unknown[] } };
  if (type === 'boolean') return [true, false];
  return choices ?? items?.enum ?? (/^(integer|number)$/.test(String(type)) ? [1, 0, -1] : ['true', '1', '*']);
}

function withParameter({ name, in: place }: Parameter, value: unknown): Variant {
  const text = String(value);
  const change: Readonly<Record<string, Variant['change']>> = {
    header: (request) => withHeaders(request, { [name]: text }),
    cookie: (request) => withCookie(request, name, encodeURIComponent(text)),
  };
  return {
    name: `with ${place === 'query' ? '' : `the ${place} `}${name}=${text}`,
    change: change[place] ?? ((request) => withQuery(request, `${name}=${encodeURIComponent(text)}`)),
  };
}

function otherBodies({ operation: at, api: { document } }: Subject): readonly Variant[] {
  const { operation } = at;
  const requestBody = dereference(document, operation.requestBody);
  if (!isObject(requestBody)) return [];
  const types = isObject(requestBody['content']) ? Object.keys(requestBody['content']) : [];
  const others = [...types.slice(1), 'text/plain', 'application/x-www-form-urlencoded'];
  const samples = types.length < 2 ? [] : types.flatMap((name) => bodyAs(document, at, name) ?? []);
  return [
    { name: 'with a broken body', change: (request) => ({ ...request, body: '{' }) },
    { name: 'without its body', change: (request) => ({ ...request, body: undefined }) },
    { name: 'with a list as its body', change: (request) => ({ ...request, body: `[${request.body ?? '{}'}]` }) },
    {
      name: 'with a list of two bodies',
      change: (request) => ({ ...request, body: `[${request.body ?? '{}'},${request.body ?? '{}'}]` }),
    },
    ...samples.map(({ type = '', body }) => ({
      name: `with a sample of ${type}`,
      change: (request: ApiRequest) => ({ ...withHeaders(request, { 'content-type': type }), body }),
    })),
    ...others.map((type) => ({
      name: `with a body of ${type}`,
      change: (request: ApiRequest) => withHeaders(request, { 'content-type': type }),
    })),
  ];
}

function otherTypes({ operation: { operation }, api: { document, isFull } }: Subject): readonly Variant[] {
  const documented = Object.values(operation.responses ?? {}).flatMap((one) => {
    const response = dereference(document, one);
    return isObject(response) && isObject(response['content']) ? Object.keys(response['content']) : [];
  });
  const usual = ['text/csv', 'text/html', 'application/xml', 'application/pdf', 'text/event-stream'];
  return [...new Set([...documented, ...(isFull ? usual : [])])].map((type) => ({
    name: `with Accept: ${type}`,
    change: (request) => withHeaders(request, { accept: type }),
  }));
}

function scopesOf({ operation: { security } }: Subject): string {
  return [...new Set(security.flat())].join(' ');
}

/** Groups of headers with different names. */
function inGroups(headers: readonly Header[]): readonly (readonly Header[])[] {
  const groups: Header[][] = [];
  for (const header of headers) {
    const isFree = (group: Header[]): boolean => group.length < GROUP && !group.some(([name]) => name === header[0]);
    const group = groups.find(isFree);
    if (group) group.push(header);
    else groups.push([header]);
  }
  return groups;
}
