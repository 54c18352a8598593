import { headerOf } from '../../token/bearer';
import { pathOf, type GateRequest } from '../request-state';

/** Why a request has no token, for the log, where it shows. */
export function withoutToken(req: GateRequest): string | undefined {
  const isMetadata = pathOf(req).includes('/.well-known/oauth-protected-resource');
  return isMetadata ? METADATA_REFUSED : misplacedToken(req);
}

const METADATA_REFUSED =
  'the metadata of the API (RFC 9728) is read without a token: mount protectedResourceMetadata(gate) before the gate';

/** A JWT, as a cookie or a header has it. */
const JWT_TEXT = /^(?:Bearer )?eyJ[\w-]+\.[\w-]+\.[\w-]*$/i;
/** Their names are text of the caller, and may be a token too. */
const SHOWN_NAME = /^[\w-]{1,40}$/;

/** Where a request without a bearer token has one after all, another scheme, a cookie, another header. */
function misplacedToken({ headers }: GateRequest): string | undefined {
  const authorization = headerOf({ headers }, 'authorization');
  if (typeof authorization === 'string') {
    const [scheme = '', credentials] = authorization.split(' ', 2);
    if (credentials === undefined && JWT_TEXT.test(scheme))
      return 'the Authorization header has a token without Bearer before it';
    return SHOWN_NAME.test(scheme) ? `the Authorization header has the scheme ${scheme}, expected Bearer` : undefined;
  }
  const cookies = headerOf({ headers }, 'cookie');
  const pairs = typeof cookies === 'string' ? cookies.split('; ').map((pair) => pair.split('=', 2)) : [];
  const [cookie] = pairs.find(([name = '', value = '']) => SHOWN_NAME.test(name) && JWT_TEXT.test(value)) ?? [];
  if (cookie !== undefined) return `the cookie ${cookie} has a token: expected in the Authorization header`;
  // A proof of DPoP is a JWT too.
  const names = Object.keys(headers).filter((name) => name !== 'dpop' && SHOWN_NAME.test(name));
  const header = names.find((name) => JWT_TEXT.test(String(headers[name])));
  return header && `the header ${header} has a token: expected in the Authorization header`;
}
