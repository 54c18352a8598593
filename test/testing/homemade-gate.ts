import { createHmac, createPublicKey, verify } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import type { RequestHandler } from 'express';
import { AuthError } from '../../src/gate';
import type { Auth, Reason } from '../../src/gate';
import type { ScopeRequirement } from '../../src/gate/verifier/scope-requirement';
import type { MemoryLog } from '../../src/gate/generation';
import type { TestIssuer } from '../../src/testing';

/** A check that a gate can forget. */
export type Check =
  | 'algorithm'
  | 'unsigned'
  | 'signature'
  | 'issuer'
  | 'audience'
  | 'expiry'
  | 'not before'
  | 'generation'
  | 'one header'
  | 'query'
  | 'malformed';

type Json = Readonly<Record<string, unknown>>;

/** The options of the issuer that a homemade gate reads. */
interface Source {
  readonly keys: { readonly keys: readonly (JsonWebKey & { readonly kid?: string })[] };
}

/** The lowest generation of a client that counts, as the log of its issuer is now. */
export function floorOf({ options }: TestIssuer, clientId: string): number {
  return new Map((options.generationSource as MemoryLog).read(undefined).changes).get(clientId) ?? 0;
}

/**
 * A handwritten gate, correct except for the checks that it forgets. Like a gate in production it sends `invalid_token`
 * instead of the reason.
 */
export function homemadeGate(issuer: TestIssuer, ...forgotten: readonly Check[]): RequestHandler {
  return gateOf(issuer, (clientId) => floorOf(issuer, clientId), forgotten);
}

/** A homemade gate that gets its floors elsewhere. */
export function gateOf(
  issuer: TestIssuer,
  readFloor: (clientId: string) => number,
  forgotten: readonly Check[] = [],
): RequestHandler {
  const { keys } = issuer.options as unknown as Source;
  const forgets = (check: Check): boolean => forgotten.includes(check);

  function readBearer(headers: readonly string[], query: unknown): string {
    if (query !== undefined && !forgets('query')) throw new AuthError('token_in_query');
    if (headers.length > 1 && !forgets('one header')) throw new AuthError('malformed_authorization');
    const token = headers[0] === undefined ? query : /^Bearer (\S+)$/i.exec(headers[0])?.[1];
    if (typeof token !== 'string') throw new AuthError(headers[0] ? 'malformed_authorization' : 'missing_token');
    return token;
  }

  function verifySignature(header: Json, input: string, signature: Buffer): void {
    if ('crit' in header) throw new AuthError('unsupported_critical_header');
    if (header['typ'] !== 'at+jwt') throw new AuthError('wrong_type');
    const jwk = keys.keys.find(({ kid }) => kid === header['kid']);
    if (!jwk) throw new AuthError('unknown_key');
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    if (header['alg'] === 'none' && (forgets('unsigned') || forgets('algorithm'))) return;
    if (header['alg'] === 'HS256' && forgets('algorithm')) return verifyHmac(key, input, signature);
    if (header['alg'] !== 'ES256') throw new AuthError('algorithm_not_allowed');
    const good = verify('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }, signature);
    if (!good && !forgets('signature')) throw new AuthError('bad_signature');
  }

  function verifyClaims(claims: Json): void {
    const checks: readonly (readonly [Check, Reason, boolean])[] = [
      ['issuer', 'wrong_issuer', claims['iss'] === issuer.issuer],
      ['audience', 'wrong_audience', claims['aud'] === issuer.audience],
      ['expiry', 'expired', Number(claims['exp']) * 1000 > issuer.clock.now()],
      ['not before', 'not_yet_valid', Number(claims['nbf'] ?? 0) * 1000 <= issuer.clock.now()],
      ['generation', 'superseded', Number(claims['generation']) >= readFloor(String(claims['client_id']))],
    ];
    const failed = checks.find(([check, , holds]) => !holds && !forgets(check));
    if (failed) throw new AuthError(failed[1]);
  }

  return function homemade(req, _res, next) {
    const token = readBearer(req.headersDistinct['authorization'] ?? [], req.query['access_token']);
    const [header = '', payload = '', signature = ''] = token.split('.');
    if (payload === '' && !forgets('malformed')) throw new AuthError('malformed_token');
    verifySignature(decode(header), `${header}.${payload}`, Buffer.from(signature, 'base64url'));
    const claims = decode(payload);
    verifyClaims(claims);
    const scopes = typeof claims['scope'] === 'string' ? claims['scope'].split(' ') : [];
    req.auth = { clientId: String(claims['client_id']), scopes, claims } as unknown as Auth;
    next();
  };
}

/** The guard of this gate. */
export function homemadeGuard(need: ScopeRequirement): RequestHandler {
  const requiredScopes = 'anyOf' in need ? need.anyOf : need.allOf;
  return function checkScopes(req, _res, next) {
    const has = (scope: string): boolean => req.auth?.scopes.includes(scope) ?? false;
    const isEnough = 'anyOf' in need ? requiredScopes.some(has) : requiredScopes.every(has);
    next(isEnough ? undefined : new AuthError('insufficient_scope', { requiredScopes }));
  };
}

function verifyHmac(key: KeyObject, input: string, signature: Buffer): void {
  const secret = key.export({ type: 'spki', format: 'pem' });
  if (!createHmac('sha256', secret).update(input).digest().equals(signature)) throw new AuthError('bad_signature');
}

function decode(part: string): Json {
  return JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as Json;
}
