import { isObject } from 'tillgate/internal';
import { base64, together, withCookie, withHeaders, withMember as withJson, withQuery } from './requests';
import type { Variant } from './requests';
import type { ApiRequest } from './responses';

type Put = (request: ApiRequest, name: string, token: string) => ApiRequest;

const FORM = 'application/x-www-form-urlencoded';

/** Places for a good token where none belongs (RFC 6750 section 2; RFC 9700 section 4.3.2). */
const PLACES: readonly (readonly [quick: boolean, what: string, put: Put, names: string])[] = [
  [true, 'the cookie', withCookie, 'access_token token jwt id_token session auth authorization Authorization bearer'],
  [
    true,
    'the header',
    (request, name, token) => withHeaders(request, { [name]: token }),
    'X-Access-Token X-Auth-Token X-Authorization X-Token X-Jwt X-Jwt-Assertion X-Forwarded-Access-Token X-Id-Token Sec-WebSocket-Protocol',
  ],
  [
    false,
    'the header, as Bearer,',
    (request, name, token) => withHeaders(request, { [name]: `Bearer ${token}` }),
    'X-Authorization X-Forwarded-Authorization X-Original-Authorization Proxy-Authorization',
  ],
  [
    false,
    'the cookie, as Bearer,',
    (request, name, token) => withCookie(request, name, encodeURIComponent(`Bearer ${token}`)),
    'access_token authorization Authorization',
  ],
  [
    true,
    'the query',
    (request, name, token) => withQuery(request, `${name}=${token}`),
    'token jwt auth bearer auth_token id_token api_key authorization sig',
  ],
  // A gate that knows access_token refuses it.
  [false, 'the query', (request, name, token) => withQuery(request, `${name}=${token}`), 'access_token[]'],
  [true, 'the form', withForm, 'token jwt auth_token id_token authorization assertion'],
  [true, 'the JSON body', withMember, 'token jwt auth_token id_token authorization assertion'],
  [false, 'the form', withForm, 'access_token'],
  [false, 'the JSON body', withMember, 'access_token'],
];

/** Forms of the Authorization header that are not `Bearer token`. */
const SCHEMES: readonly (readonly [name: string, valueOf: (token: string) => string])[] = [
  ...['Token', 'JWT', 'OAuth', 'Bearer:', 'Basic', 'DPoP', 'Negotiate'].map(
    (scheme) => [`the scheme ${scheme}`, (token: string) => `${scheme} ${token}`] as const,
  ),
  ['no scheme', (token) => token],
  ['Basic credentials', (token) => `Basic ${base64(`x:${token}`)}`],
  ['the user of Basic credentials', (token) => `Basic ${base64(`${token}:`)}`],
  ['a list of schemes', (token) => `Basic eDp5, Bearer ${token}`],
  ['quotes', (token) => `Bearer "${token}"`],
  ['a parameter of the scheme', (token) => `Bearer token=${token}`],
];

/** Requests with a good token where none belongs, except for places and schemes that the document has. */
export function misplacedTokens(
  document: object,
  token: string,
  isFull: boolean,
): { readonly places: readonly Variant[]; readonly schemes: readonly Variant[] } {
  const { components } = document as { readonly components?: { readonly securitySchemes?: unknown } };
  const all = isObject(components?.securitySchemes) ? Object.values(components.securitySchemes) : [];
  const documented = all.flatMap((one) => (isObject(one) ? [String(one['name']).toLowerCase()] : []));
  const isFree = (name: string): boolean => !documented.some((one) => name.toLowerCase().includes(one));
  const places = PLACES.filter(([quick]) => quick || isFull).map(([, what, put, names]) => {
    const toVariant = (name: string): Variant => ({
      name: `a token in ${what} ${name}`,
      change: (request) => put(request, name, token),
    });
    return together(names.split(' ').filter(isFree).map(toVariant));
  });
  const schemes = (isFull ? SCHEMES.filter(([name]) => isFree(name)) : []).map(([name, valueOf]) => ({
    name: `a token in ${name}`,
    change: (request: ApiRequest) => withHeaders(request, { authorization: valueOf(token) }),
  }));
  return { places: places.filter(({ parts }) => parts.length > 0), schemes };
}

function withForm(request: ApiRequest, name: string, token: string): ApiRequest {
  const { headers, body = '' } = request;
  const isForm = headers['content-type'] === FORM;
  return { ...withHeaders(request, { 'content-type': FORM }), body: `${isForm ? `${body}&` : ''}${name}=${token}` };
}

function withMember(request: ApiRequest, name: string, token: string): ApiRequest {
  return withJson(withHeaders(request, { 'content-type': 'application/json' }), name, token);
}
