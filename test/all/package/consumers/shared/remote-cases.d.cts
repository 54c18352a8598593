/** What the cases are made of: the packages as the project has loaded them. */
export interface Packages {
  readonly express: unknown;
  readonly authenticate: unknown;
  readonly requireScope: unknown;
  readonly startTestIssuer: unknown;
}

export function remoteCases(packages: Packages): { readonly name: string; readonly run: () => Promise<void> }[];
