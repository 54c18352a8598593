/** How the routes of an app and its OpenAPI document can differ. */
export type RouteFindingKind =
  | 'guard-after-handler'
  | 'guarded-public-route'
  | 'missing-route'
  | 'outside-gate'
  | 'undeclared-scope'
  | 'undocumented-route'
  | 'unguarded-route'
  | 'unreadable-route'
  | 'unused-scope'
  | 'wrong-requirement';

/** One difference between the routes of an app and its OpenAPI document. */
export interface RouteFinding {
  readonly kind: RouteFindingKind;
  /** `GET`; `ALL` for a route that accepts every method; `*` where no single route is meant. */
  readonly method: string;
  /** As OpenAPI writes it: `/v1/orders/{id}`; `*` where no single route is meant. */
  readonly path: string;
  /** What was got, what was expected, and what to do. */
  readonly detail: string;
}

/** Names of the two sides in findings: `the app`, `openapi.yaml`. */
export interface FindingNames {
  readonly source: string;
  readonly document: string;
}

/** Makes a finding about one route or operation. */
export function findingAt(
  { method, path }: { readonly method: string; readonly path: string },
  kind: RouteFindingKind,
  detail: string,
): RouteFinding {
  return { kind, method, path, detail };
}

/** A finding as one line of text. */
export function describeFinding({ method, path, detail }: RouteFinding): string {
  return path === '*' ? detail : `${method} ${path}: ${detail}`;
}

/** Sorts findings by path, method and kind: the order of routes makes no difference. */
export function sortFindings(findings: readonly RouteFinding[]): readonly RouteFinding[] {
  const keyOf = ({ kind, method, path, detail }: RouteFinding): string =>
    [path === '*' ? '1' : '0', path, method, kind, detail].join('\n');
  return findings.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}
