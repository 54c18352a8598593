import { declaredScopes, nameOf } from '../openapi/document';
import { shapeOf } from '../openapi/path-template';
import type { ContractDocument, LocatedOperation } from '../openapi/document';

const READS = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY'];

/** What in the `security` of a document looks like a mistake; nothing here is one for certain. */
export function securityNotices(
  document: ContractDocument,
  operations: readonly LocatedOperation[],
): readonly string[] {
  const required = new Set(operations.flatMap(({ security }) => security.flat()));
  return [
    ...operations
      .filter(({ access, method }) => access === 'anybody' && !READS.includes(method))
      .map((one) => `${nameOf(one)} writes, and anybody may call it`),
    ...declaredScopes(document)
      .filter((scope) => !required.has(scope))
      .map((scope) => `scope ${scope} is declared, and no operation requires it`),
    ...operations.flatMap((one, index) => {
      const twin = operations.slice(0, index).find((other) => isTwin(one, other));
      return twin ? [`${nameOf(twin)} and ${nameOf(one)} are one route, and require different scopes`] : [];
    }),
  ];
}

/** Whether Express takes two operations for the same route, while the document protects them differently. */
function isTwin(one: LocatedOperation, other: LocatedOperation): boolean {
  if (one.method !== other.method || shapeOf(one.path).toLowerCase() !== shapeOf(other.path).toLowerCase())
    return false;
  return one.access !== other.access || JSON.stringify(one.security) !== JSON.stringify(other.security);
}
