import { everyOperation, ignoredPaths, nameOf } from '../openapi/document';
import type { ContractDocument, LocatedOperation } from '../openapi/document';
import type { ContractSettings } from './options';
import { documentedResponses } from './responses';
import type { ApiRequest, DocumentedResponses } from './responses';
import { prepareRequest } from './samples';

/** One operation of the document: an immutable value. */
export interface Operation extends LocatedOperation {
  /** `GET /orders/{id}` */
  readonly name: string;
  readonly documented: DocumentedResponses;
  /**
   * Its request, good except for the missing token.
   *
   * @throws TypeError when no value can be generated
   */
  readonly request: () => ApiRequest;
}

/** What to add to a request that needs more than a token: `; its security also needs header X-Api-Key: ...`. */
export function adviceOnNeeds({ alsoNeeds }: Operation): string {
  if (alsoNeeds.length === 0) return '';
  return `; its security also needs ${alsoNeeds.join(' and ')}: give the value in "headers" or "requests"`;
}

/** Reads first, removals last, so that no case removes what a later one needs. */
const ORDER = ['GET', 'HEAD', 'QUERY', 'OPTIONS', 'TRACE', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Lists the operations of a document in the order of their cases. */
export function operationsOf(
  document: ContractDocument,
  basePath: string,
  { ignore, requestOf }: ContractSettings,
): readonly Operation[] {
  const isIgnored = ignoredPaths(ignore);
  const all = everyOperation(document, basePath).filter(({ path }) => !isIgnored(path));
  const fixed = new Set(all.filter(({ path }) => !path.includes('{')).map(({ path }) => path));
  const responsesOf = documentedResponses(document, basePath);
  const operations = all.map((at): Operation => {
    let made: ApiRequest | undefined;
    const request = (): ApiRequest => (made ??= prepareRequest(document, at, requestOf(at), (path) => fixed.has(path)));
    // It inherits what the document says: parameters are resolved when a request needs them.
    const located = Object.create(at) as LocatedOperation;
    return Object.freeze(Object.assign(located, { name: nameOf(at), documented: responsesOf(at), request }));
  });
  return operations.sort((a, b) => ORDER.indexOf(a.method) - ORDER.indexOf(b.method));
}
