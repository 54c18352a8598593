/* eslint-disable @typescript-eslint/no-require-imports -- the scaffold needs packages that an app to look at need not have */
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type * as resources from '@tillgate/app/internal';
import type * as commerce from '@tillgate/app/internal';
import {
  describeAlternatives,
  describeFinding,
  describeRoutes,
  findDisagreements,
  loadContract,
  operationsOf,
} from '@tillgate/testing/internal';
import { auditRoutes } from '@tillgate/testing';
import { CliError, EXIT, print, table } from '../command';
import type { CommandContext, CommandOptions } from '../command';
import { loadApp } from '../load-app';

/** The document that routes are compared with unless another one is named: in the current folder. */
export const DOCUMENT = 'openapi.yaml';

const scaffold = {
  routes: () => (require('@tillgate/app/internal') as typeof resources).routes(),
  router: () => (require('@tillgate/app/internal') as typeof commerce).commerceRouter(),
};

/** `tillgate routes`: the routes of the scaffold or of an app; with `--check` compared with openapi.yaml. */
export async function listRoutes(context: CommandContext, options: CommandOptions): Promise<number | void> {
  const { check, openapi } = options;
  if (openapi !== undefined && !check) {
    throw new CliError('--openapi names what to check against: give --check too', EXIT.usage);
  }
  const app = options.app === undefined ? undefined : await loadApp(options.app);
  if (!check) return app ? listApp(context, app) : listScaffold(context);
  const document = openapi ?? DOCUMENT;
  if (!app && !existsSync(document)) {
    const what = `${document} does not exist here, and without --app the routes of the scaffold would be compared with it`;
    throw new CliError(`${what}; name your app and its document: --app ./app.js --openapi openapi.yaml`, EXIT.usage);
  }
  const findings = app && auditRoutes(app, document);
  const problems = findings?.map(describeFinding) ?? scaffoldProblems(document);
  const count = (app ? describeRoutes(app).routes : scaffold.routes()).length;
  const whose = app ? '' : ' of the scaffold';
  const isAgreed = problems.length === 0;
  const text = isAgreed ? `${count} routes${whose} agree with ${document}` : problems.join('\n');
  print(context, { routes: count, problems, ...(findings && { findings }) }, text);
  return isAgreed ? EXIT.ok : EXIT.failed;
}

/**
 * Where the scaffold and a document disagree; empty where they agree.
 *
 * @throws ConfigurationError when the document cannot be read
 */
export function scaffoldProblems(file: string): readonly string[] {
  const document = loadContract(file);
  return findDisagreements(scaffold.router(), {
    names: { source: 'the scaffold', document: basename(file) },
    document,
    operations: operationsOf(document),
    mountedAt: '/v1',
    behindGate: 'strict',
  });
}

function listScaffold(context: CommandContext): void {
  const listed = scaffold
    .routes()
    .map(({ method, path, scopes, optionalScopes }) => ({ method, path, scopes, optionalScopes }));
  const rows = listed.map(({ method, path, scopes, optionalScopes }) => {
    return [method, path, [...scopes, ...optionalScopes.map((scope) => `[${scope}]`)].join(' ')];
  });
  print(context, listed, table([['METHOD', 'PATH', 'SCOPES'], ...rows]));
}

function listApp(context: CommandContext, app: object): void {
  const { routes: described, unreadable } = describeRoutes(app);
  const listed = described.map(({ method, path, requires, further, gate }) => {
    return { method, path, requires, ...(further.length > 0 && { further }), gate };
  });
  const rows = described.map(({ method, path, requires, further, gate }) => {
    const guarded =
      [describeAlternatives(requires), ...further].filter(Boolean).join(', ') ||
      (requires.length > 0 ? '(any token)' : '(no guard)');
    return [method, path, gate === 'none' ? `${guarded} (no gate)` : guarded];
  });
  const hidden = unreadable.map((path) => ['*', path, '(cannot be read)']);
  print(context, listed, table([['METHOD', 'PATH', 'REQUIRES'], ...rows, ...hidden]));
}
