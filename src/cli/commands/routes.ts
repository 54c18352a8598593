import { routes } from '../../app/commerce/routes';
import { print, table } from '../answer';
import type { CommandContext, CommandOptions } from '../command';
import { contractProblems } from '../contract-problems';
import { EXIT } from '../exit';

/** `tillgate routes`: the table of routes; with `--check` held against openapi.yaml. */
export function listRoutes(context: CommandContext, options: CommandOptions): Promise<number> {
  const listed = routes().map(({ method, path, scopes, optionalScopes }) => ({ method, path, scopes, optionalScopes }));
  if (!options.check) {
    const rows = listed.map((route) => [route.method, route.path, scopesOf(route)]);
    print(context, listed, table([['METHOD', 'PATH', 'SCOPES'], ...rows]));
    return Promise.resolve(EXIT.ok);
  }
  const problems = contractProblems();
  const text = problems.length === 0 ? `${listed.length} routes agree with openapi.yaml` : problems.join('\n');
  print(context, { routes: listed.length, problems }, text);
  return Promise.resolve(problems.length === 0 ? EXIT.ok : EXIT.failed);
}

function scopesOf({
  scopes,
  optionalScopes,
}: {
  scopes: readonly string[];
  optionalScopes: readonly string[];
}): string {
  return [...scopes, ...optionalScopes.map((scope) => `[${scope}]`)].join(' ');
}
