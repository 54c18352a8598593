import type { gateOf } from 'tillgate/internal';
import type { TestToken } from './test-token';

/** What a gate expects of the tokens of an issuer: the row of its preset, and where it reads scopes. */
export type TokenShape = Pick<
  NonNullable<ReturnType<typeof gateOf>>['settings']['issuers'][number],
  'preset' | 'scopes' | 'generationClaim' | 'generationPath'
>;

/** A token in this shape: its type, its claims, and the names of its scopes, by the inverse of `scopes.map`. */
export function inShape(
  token: TestToken,
  clientId: string,
  generation: number,
  { preset, scopes: rule, generationClaim, generationPath = [] }: TokenShape,
): TestToken {
  const { types, clientIdClaims, fixedClaims, generationAsString } = preset;
  const [type] = types;
  const [clientClaim = 'client_id'] = clientIdClaims;
  const isStamped = generationClaim !== undefined && generationClaim !== 'iat';
  const stamp = token.generation ?? generation;
  return {
    ...token,
    header: { typ: type === 'jwt' ? 'JWT' : type, ...token.header },
    claims: {
      ...(!clientIdClaims.includes('client_id') && { client_id: undefined }),
      [clientClaim]: clientId,
      ...Object.fromEntries(fixedClaims.map(([name, value]) => [name, value])),
      ...(isStamped && atPath(generationPath, generationAsString ? String(stamp) : stamp)),
      ...(typeof token.scope === 'string' && scopesIn(token.scope.split(' ').filter(Boolean), preset, rule)),
      ...token.claims,
    },
  };
}

/** The claim that grants these scopes, and none of another name. */
function scopesIn(
  scopes: readonly string[],
  { scopeClaims }: TokenShape['preset'],
  rule: TokenShape['scopes'],
): Readonly<Record<string, unknown>> {
  const names = scopes.map((scope) => nameFor(scope, rule?.map));
  // An app of Entra has its permissions in `roles`, and `scp` is for users.
  const claim = scopeClaims.find((name) => name === 'roles') ?? scopeClaims[0] ?? 'scope';
  const claims = rule?.from ?? [{ path: [claim], prefix: '' }];
  const fits = ({ prefix }: { readonly prefix: string }): boolean => names.every((name) => name.startsWith(prefix));
  const { path, prefix } = claims.find(fits) ?? claims[0]!;
  const [outer = 'scope', ...inner] = path;
  const own = names.map((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : name));
  const isText = inner.length === 0 && ['scope', 'scp'].includes(outer) && !own.some((name) => name.includes(' '));
  return { scope: undefined, ...atPath(path, isText ? own.join(' ') : own) };
}

/** Claims with a value at the end of a path. */
function atPath(path: readonly string[], value: unknown): Readonly<Record<string, unknown>> {
  return path.reduceRight<unknown>((held, name) => ({ [name]: held }), value) as Readonly<Record<string, unknown>>;
}

/** The name that grants the scope and as little else as possible; one that nothing grants stays as it is. */
function nameFor(scope: string, map: NonNullable<TokenShape['scopes']>['map']): string {
  const granting = [...(map ?? [])].filter(([, granted]) => granted.includes(scope));
  const [[name] = [scope]] = granting.sort(([, a], [, b]) => a.length - b.length);
  return name;
}
