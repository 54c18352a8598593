import { contentOf } from '../openapi/document';
import type { Parameter } from '../openapi/document';
import { base64, together, withCookie, withHeaders, withMember, withQuery } from './requests';
import type { Variant } from './requests';
import { isJson } from './responses';
import type { ApiRequest } from './responses';
import { bodyAs } from './samples';
import { requestOf } from './subject';
import type { Subject } from './subject';

/** One class of attacks: a rule that derives requests from an operation. */
export interface VariantClass {
  /** `GET /orders stays closed ...` */
  readonly name: string;
  readonly variants: (subject: Subject) => readonly Variant[];
}

/** Headers that one request has at most: servers limit their sum. */
const GROUP = 12;

type Header = readonly [name: string, value: string];

/** The headers of a table: those of one entry, each with its value. */
function headersIn(table: string): readonly (readonly Header[])[] {
  return table.split('|').map((row) => {
    const [names = '', ...value] = row.split('=');
    return names.split(',').map((name): Header => [name, value.join('=')]);
  });
}

/** Spellings of a path that Express, proxies and other routers may take for the same one; `{head}/{end}` is the path. */
const LIKELY_SPELLINGS = '{path}/ /{path} {head}/./{end} {open}/..{path} {path}.json';
const OTHER_SPELLINGS =
  '{path}// {path}/. {path}/x/.. {path}; {path};a=b {path}%00 {path}%20 {path}%09 {path}%0a {path}%0d%0a {path}%3f {path}%23 {path}/%23 {path}. {path}~ {path}* {path}.xml {path}.html {path}.css {path}.js {path}/x.css {path}/favicon.ico {path}%2fx.css {path};x.css {path}?x=.css {head}//{end} {head}%2f{end} {head}%2F{end} {head}%252f{end} {head}\\{end} {head}%5c{end} {head}/;/{end} /.{path} /x/..{path} {head}/x/../{end} {head}/x/%2e%2e/{end} {head}/%2e/{end} {path}/..;/{end} {open}/%2e%2e{path} {open}/..%2f{bare} {open}/..;{path} {open}/../..{path} {open}{path} {path}?path={open} {path}?{open} /api{path} http://localhost{path}';
const encoded = (text: string): string => `%${text.charCodeAt(text.length - 1).toString(16)}`;
const upper = (text: string): string => text.toUpperCase();
/** More of them, by what they replace. */
const RESPELLINGS: readonly (readonly [quick: boolean, what: RegExp, by: (text: string, part: string) => string])[] = [
  [true, /.*/, upper],
  [true, /[a-z](?=[^/]*$)/, encoded],
  [true, /\/v\d+(?=\/)/, () => ''],
  [false, /\/(?=.)/g, () => '//'],
  [false, /[a-z]/, upper],
  [false, /[a-z](?=[^/]*$)/, upper],
  [false, /[a-z](?=[^/]*$)/, (text) => encoded(text).replace('%', '%25')],
  [false, /\/[a-z]/, (text) => `/${encoded(text)}`],
  [false, /^\/[^/]+/, (start) => `${start};a=b`],
  [false, /\/v(\d+)(?=\/)/, (_, version) => `/v${Number(version) + 1}`],
  [false, /\/v(\d+)(?=\/)/, (_, version) => `/v${Number(version) - 1}`],
];

/** Headers that change what a proxy or framework does with a request, `A,B=value`: those of one entry go together. */
const ROUTING_HEADERS =
  'X-Forwarded-Host,Host=localhost|X-HTTP-Method-Override,X-Forwarded-Method,X-Original-Method=OPTIONS|X-Api-Key=test|Origin=http://localhost|Origin=null|Connection=close, Authorization|If-None-Match=*|If-Modified-Since=Fri, 01 Jan 2100 00:00:00 GMT|Range=bytes=0-9|Accept-Version=0';

/** Headers that proxies set to say who calls, and that callers can set too where nothing removes them. */
const TRUSTED_HEADERS =
  'X-Forwarded-For,X-Real-IP,X-Client-IP,X-Custom-IP-Authorization,X-Originating-IP,True-Client-IP=127.0.0.1|X-Remote-Addr=10.0.0.1|Forwarded=for=127.0.0.1;host=localhost|X-Forwarded-Proto=https|X-Forwarded-User,X-Remote-User,Remote-User,X-User,X-Authenticated-User,X-Authenticated-Userid=admin|X-Consumer-Username,X-User-Role,X-Role,X-Roles=admin|X-Internal,X-Debug,X-Test,X-Bypass-Auth,X-No-Auth,X-Health-Check,X-User-Id=1|X-Admin,X-Authenticated,X-Internal-Request,X-Internal-Service,X-Envoy-Internal,X-Skip-Auth,X-Cron=true|X-Client-Id=contract-cases|X-Forwarded-Client-Cert=By=spiffe://local;Subject="CN=admin"|X-SSL-Client-Verify=SUCCESS|X-Requested-With=XMLHttpRequest|Referer=http://localhost/|Purpose=prefetch|Sec-Fetch-Site=same-origin|User-Agent=kube-probe/1.31|User-Agent=ELB-HealthChecker/2.0|User-Agent=GoogleHC/1.0|X-Middleware-Subrequest=middleware:middleware:middleware:middleware:middleware|X-Middleware-Subrequest=src/middleware:src/middleware:src/middleware:src/middleware:src/middleware';

const OVERRIDES = ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'];
/** Those that change something are another case. */
const READS = ['HEAD', 'GET', 'OPTIONS', 'QUERY', 'PROPFIND', 'COPY', 'TRACE'];

/** Attacks by request: each row is a class, and derives its requests from the document. */
export const VARIANTS: Readonly<Record<string, VariantClass>> = {
  spelling: {
    name: 'under another spelling of its path',
    variants(subject) {
      const { publicPath, isFull } = subject.api;
      const [path = '', query] = requestOf(subject).target.split('?', 2);
      const at = path.lastIndexOf('/');
      const [head, end, bare] = [path.slice(0, at), path.slice(at + 1), path.slice(1)];
      const parts: Readonly<Record<string, string>> = { path, open: publicPath, head, end, bare };
      const spellings = [
        ...(isFull ? `${LIKELY_SPELLINGS} ${OTHER_SPELLINGS}` : LIKELY_SPELLINGS)
          .split(' ')
          .map((one) => one.replace(/\{(\w+)\}/g, (_, name: string) => parts[name] ?? '')),
        ...RESPELLINGS.filter(([quick]) => quick || isFull).map(([, what, by]) => path.replace(what, by)),
      ];
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
      const { api } = subject;
      const toVariant = ([name, value]: Header): Variant => ({
        name: `with ${name}: ${value}`,
        change: (request) => withHeaders(request, { [name]: value }),
      });
      const scope = scopesOf(subject);
      const open = `X-Original-URL,X-Rewrite-URL=${api.publicPath}`;
      const more = `X-Forwarded-Prefix,X-Forwarded-Uri,X-Forwarded-Path=${api.publicPath}|X-Original-URL=${requestOf(subject).target}`;
      const routing = headersIn(api.isFull ? [open, more, ROUTING_HEADERS].join('|') : open);
      const trusted: readonly Header[] = [
        ...headersIn(TRUSTED_HEADERS).flat(),
        ...headersIn(`X-Scope,X-Scopes,X-Token-Scopes,X-Authenticated-Scope=${scope}`).flat(),
        ...['X-Token-Payload', 'X-Userinfo'].map((name): Header => [name, base64(JSON.stringify({ scope }))]),
        ['X-Jwt-Claims', JSON.stringify({ sub: 'admin', scope })],
      ];
      return [
        ...routing.map((row) => ({ ...together(row.map(toVariant)), isElsewhere: true })),
        ...inGroups(trusted).map((some) => together(some.map(toVariant))),
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
  const as = (type: string, one: ApiRequest) => ({ ...withHeaders(one, { 'content-type': type }), method: 'POST' });
  const body = `_method=${method}`;
  const form: Variant['change'] = (request) => ({ ...as('application/x-www-form-urlencoded', request), body });
  const json: Variant['change'] = (request) => withMember(as('application/json', request), '_method', method);
  return [
    { name: `by POST with _method=${method} in a form`, change: form },
    { name: `by POST with _method=${method} in its body`, change: json },
  ];
}

/** Names that APIs have for other forms of a response, also where their document does not say so. */
const USUAL =
  'fields=* include=* expand=* embed=* limit=1 page=1 format=json view=full debug=true admin=true preview=true public=true all=true callback=f';
const QUICK_VALUES = 3;
const FULL_VALUES = 8;

/** Each optional parameter and header with each of its values: one by one, or the first of all of them, the second, the third. */
function otherValues(subject: Subject): readonly Variant[] {
  const { parameters } = subject.operation;
  const { isFull } = subject.api;
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
  const lists = parameters.flatMap(({ in: place, name }) =>
    place === 'query' ? `${encodeURIComponent(name)}[]=1` : [],
  );
  const usual = [...USUAL.split(' '), `scope=${encodeURIComponent(scopesOf(subject))}`, ...lists];
  const free = usual.filter((one) => !known.includes(one.split('=', 1)[0] ?? ''));
  const asked = free.map((one) => ({
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
  const { type, enum: choices, items } = schema as { type?: unknown; enum?: unknown[]; items?: { enum?: unknown[] } };
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

function otherBodies(subject: Subject): readonly Variant[] {
  const { operation: at, api } = subject;
  const types = Object.keys(contentOf(api.document, at.operation.requestBody));
  if (types.length === 0) return [];
  const others = [...types.slice(1), 'text/plain', 'application/x-www-form-urlencoded', 'application/merge-patch+json'];
  const samples = types.length < 2 ? [] : types.flatMap((name) => bodyAs(api.document, at, name) ?? []);
  return [
    ...['{', undefined, '[*]', '[*,*]'].map((form) => ({
      name: `with ${form === undefined ? 'no body' : `the body ${form}`}`,
      change: (request: ApiRequest) => ({ ...request, body: form?.replaceAll('*', () => request.body ?? '{}') }),
    })),
    {
      name: 'with its scopes in the body',
      change: (request: ApiRequest) => withMember(request, 'scope', scopesOf(subject)),
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
  const documented = Object.values(operation.responses ?? {}).flatMap((one) => Object.keys(contentOf(document, one)));
  const usual = ['text/html', 'text/csv', 'application/xml', 'application/pdf', 'text/event-stream'];
  // What a plain request gets is not tried again in a quick run.
  const types = isFull ? [...documented, ...usual] : [...documented.filter((one) => !isJson(one)), 'text/html'];
  return [...new Set(types)].map((type) => ({
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
