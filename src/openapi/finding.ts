/** What can be wrong between the routes of an app and its OpenAPI document. */
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

/** One place where the routes of an app and its OpenAPI document say different things. */
export interface RouteFinding {
  readonly kind: RouteFindingKind;
  /** `GET`; `ALL` for a route that answers every method; `*` where no single route is meant. */
  readonly method: string;
  /** As OpenAPI writes it: `/v1/orders/{id}`; `*` where no single route is meant. */
  readonly path: string;
  /** What was got, what was expected, and what to do. */
  readonly detail: string;
}

/** What the two sides are called in findings. */
export interface FindingNames {
  /** `the app`, `the router`. */
  readonly source: string;
  /** `openapi.yaml`. */
  readonly document: string;
}

/** A finding as one line of text. */
export function describeFinding({ method, path, detail }: RouteFinding): string {
  return path === '*' ? detail : `${method} ${path}: ${detail}`;
}

/** Puts findings in an order that does not depend on the order of routes: by path, method and kind. */
export function sortFindings(findings: readonly RouteFinding[]): readonly RouteFinding[] {
  const keyOf = ({ kind, method, path, detail }: RouteFinding): string =>
    [path === '*' ? '1' : '0', path, method, kind, detail].join('\n');
  return findings
    .map((finding) => [keyOf(finding), finding] as const)
    .sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
    .map(([, finding]) => finding);
}
