/** The target of a request path. */
export interface PathMatch<Target> {
  readonly target: Target;
  /** Still percent-encoded. */
  readonly parameters: Readonly<Record<string, string>>;
}

interface Template<Target> {
  readonly segments: readonly Segment[];
  readonly target: Target;
}

type Segment = { readonly literal: string } | { readonly parameter: string };

/**
 * Makes a look-up from request paths to OpenAPI templates (`/v1/orders/{id}`), concrete ones first (OpenAPI 3.1 section
 * 4.8.8.2). Ignores case and one slash at the end, as Express routers do by default: no request that Express serves may
 * bypass the contract.
 */
export function pathMatcher<Target>(
  targets: Iterable<readonly [template: string, target: Target]>,
): (path: string) => PathMatch<Target> | undefined {
  const byLength = new Map<number, Template<Target>[]>();
  for (const [path, target] of targets) {
    const template = { segments: segmentsOf(path).map(toSegment), target };
    const { length } = template.segments;
    byLength.set(length, [...(byLength.get(length) ?? []), template].sort(concreteFirst));
  }

  return function match(path) {
    const segments = segmentsOf(path);
    for (const { segments: template, target } of byLength.get(segments.length) ?? []) {
      const parameters = matchSegments(template, segments);
      if (parameters) return { target, parameters };
    }
    return undefined;
  };
}

function matchSegments(
  template: readonly Segment[],
  segments: readonly string[],
): Readonly<Record<string, string>> | undefined {
  const parameters: Record<string, string> = {};
  for (const [index, part] of template.entries()) {
    const segment = segments[index] ?? '';
    if ('literal' in part) {
      if (segment.toLowerCase() !== part.literal) return undefined;
    } else {
      if (segment === '') return undefined;
      parameters[part.parameter] = segment;
    }
  }
  return parameters;
}

function segmentsOf(path: string): string[] {
  return path.replace(/(?<=.)\/$/, '').split('/');
}

function toSegment(text: string): Segment {
  const [, parameter] = /^\{(.+)\}$/.exec(text) ?? [];
  return parameter === undefined ? { literal: text.toLowerCase() } : { parameter };
}

function concreteFirst<Target>(a: Template<Target>, b: Template<Target>): number {
  return shapeOf(a) < shapeOf(b) ? -1 : 1;
}

/** Sorts literals before parameters, from the first segment on. */
function shapeOf({ segments }: Template<unknown>): string {
  return segments.map((segment) => ('literal' in segment ? '0' : '1')).join('');
}
