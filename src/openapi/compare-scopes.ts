import { declaredScopes } from './document';
import type { ContractDocument, LocatedOperation } from './document';
import type { FindingNames, RouteFinding } from './finding';

/**
 * Holds the scopes that are required against those that the document declares: a scope that is declared nowhere is one
 * that no client may have. A document that declares none at all leaves that to the authorization server.
 */
export function compareScopes(
  { source, document: name }: FindingNames,
  document: ContractDocument,
  operations: readonly LocatedOperation[],
  required: readonly string[],
): readonly RouteFinding[] {
  const declared = new Set(declaredScopes(document));
  if (declared.size === 0) return [];
  const optional = operations.flatMap(({ operation }) => operation['x-optional-scopes'] ?? []);
  const used = new Set([...operations.flatMap(({ security }) => security.flat()), ...optional]);
  const ours = new Set([...required, ...optional]);
  const where = `components.securitySchemes of ${name}`;
  const undeclared = [...new Set([...ours, ...used])].filter((scope) => !declared.has(scope));
  return [
    ...undeclared.map((scope) => {
      const detail = `scope ${scope}: missing in ${where}, so that no client may have it; declare it there with a description`;
      return { kind: 'undeclared-scope', method: '*', path: '*', detail } as const;
    }),
    ...[...declared].flatMap((scope) => {
      if (used.has(scope) && ours.has(scope)) return [];
      const nobody = used.has(scope) ? `${source} does not require it; require` : 'no operation asks for it; use';
      const detail = `scope ${scope}: declared in ${where}, but ${nobody} it, or remove it`;
      return [{ kind: 'unused-scope', method: '*', path: '*', detail } as const];
    }),
  ];
}
