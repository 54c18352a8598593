import { routes } from '../../app/commerce/routes';
import { describeRoutes } from '../../openapi/app-routes';
import { describeFinding } from '../../openapi/audit';
import { describeAlternatives } from '../../openapi/document';
import { auditRoutes } from '../../testing/audit-routes';
import type { CommandContext, CommandOptions } from '../command';
import { CliError, EXIT, print, table } from '../command';
import { contractProblems } from './check';
import { loadApp } from '../load-app';
const DOCUMENT = 'openapi.yaml';

/** `tillgate routes`: the routes of the scaffold or of an app; with `--check` compared with openapi.yaml. */
export async function listRoutes(context: CommandContext, options: CommandOptions): Promise<number> {
  if (options.openapi !== undefined && !options.check) {
    throw new CliError('--openapi names what to check against: give --check too', EXIT.usage);
  }
  const app = options.app === undefined ? undefined : await loadApp(options.app);
  if (!options.check) return app ? listApp(context, app) : listScaffold(context);
  return app ? checkApp(context, app, options.openapi) : checkScaffold(context, options.openapi);
}

function listScaffold(context: CommandContext): number {
  const listed = routes().map(({ method, path, scopes, optionalScopes }) => ({ method, path, scopes, optionalScopes }));
  const rows = listed.map(({ method, path, scopes, optionalScopes }) => {
    return [method, path, [...scopes, ...optionalScopes.map((scope) => `[${scope}]`)].join(' ')];
  });
  print(context, listed, table([['METHOD', 'PATH', 'SCOPES'], ...rows]));
  return EXIT.ok;
}

function listApp(context: CommandContext, app: object): number {
  const { routes: described, unreadable } = describeRoutes(app);
  const listed = described.map(({ method, path, requires, gate }) => ({
    method,
    path,
    requires,
    gate,
  }));
  const rows = listed.map(({ method, path, requires, gate }) => {
    const guarded = describeAlternatives(requires) || (requires.length > 0 ? '(a claim)' : '(no guard)');
    return [method, path, gate === 'none' ? `${guarded} (no gate)` : guarded];
  });
  const hidden = unreadable.map((path) => ['*', path, '(cannot be read)']);
  print(context, listed, table([['METHOD', 'PATH', 'REQUIRES'], ...rows, ...hidden]));
  return EXIT.ok;
}

function checkScaffold(context: CommandContext, document: string | undefined): number {
  const problems = contractProblems(document);
  return report(context, { routes: routes().length, problems, document: document ?? DOCUMENT });
}

function checkApp(context: CommandContext, app: object, document = DOCUMENT): number {
  const findings = auditRoutes(app, document);
  const problems = findings.map(describeFinding);
  return report(context, { routes: describeRoutes(app).routes.length, problems, findings, document });
}

interface Report {
  readonly routes: number;
  readonly problems: readonly string[];
  readonly document: string;
  readonly findings?: readonly object[];
}

function report(context: CommandContext, { document, ...result }: Report): number {
  const ok = result.problems.length === 0;
  print(context, result, ok ? `${result.routes} routes agree with ${document}` : result.problems.join('\n'));
  return ok ? EXIT.ok : EXIT.failed;
}
