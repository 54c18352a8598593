import type { TestToken } from '../issuer/test-token';

/** Claims that hold the required scopes in a form that is not theirs; the token has no other scopes. */
export function scopeForms(
  scopes: readonly string[],
  declared: readonly string[],
): readonly (readonly [name: string, token: TestToken])[] {
  const all = scopes.join(' ');
  // A name without a separator has no parent: it would be the scope itself.
  const parts = scopes.map((scope) => scope.split(/[:.]/)[0] ?? scope).filter((one) => !scopes.includes(one));
  // Another scope may be the parent of this one only where the document declares it.
  const parents = parts.filter((one) => declared.includes(one));
  const wildcards = parts.flatMap((one) => [`${one}:*`, `${one}.*`, `${one}:`]);
  const claim = (scope: unknown): TestToken => ({ claims: { scope } });
  return [
    ...(parents.length > 0 ? [['a parent', claim(parents.join(' '))] as const] : []),
    ['a wildcard', claim('*')],
    ...(parts.length > 0 ? [['a wildcard of its part', claim(wildcards.join(' '))] as const] : []),
    ['a regular expression', claim('.* .+ ^.*$ %')],
    ['a comma in between', claim(`a,${scopes.join(',')},b`)],
    ['other separators', claim(scopes.flatMap((scope) => [`a+${scope}`, `a;${scope}`, `a|${scope}`]).join(' '))],
    ['quotes', claim(scopes.map((scope) => `"${scope}"`).join(' '))],
    ['another scope in front', claim(scopes.map((scope) => `no-${scope}`).join(' '))],
    ['a negation', claim(scopes.map((scope) => `!${scope}`).join(' '))],
    ['an object', claim(Object.fromEntries(scopes.map((scope) => [scope, true])))],
    ['a list in a list', claim([scopes])],
    ['true', claim(true)],
    ['a number', claim(1)],
    ['JSON', claim(JSON.stringify(scopes))],
    ['a role', { claims: { role: 'admin', roles: ['admin'], groups: ['admin'], admin: true } }],
    ['the scope of an actor', { claims: { act: { sub: 'x', scope: all }, may_act: { scope: all } } }],
    ['a role at another API', { claims: { resource_access: { other: { roles: scopes } } } }],
    ['a requested scope', { claims: { requested_scope: all, scopes_supported: scopes } }],
  ];
}
