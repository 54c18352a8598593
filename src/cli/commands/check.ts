import { ConfigurationError } from '../../core/configuration-error';
import { escapeUnsafe } from '../../core/logger';
import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import type { CommandContext, CommandOptions } from '../command';
import { EXIT, print } from '../command';
import { apiSettings } from '../settings';
import { commerceRouter } from '../../app/commerce/router';
import { routes, SCOPES } from '../../app/commerce/routes';
import { installedVersion } from '../../core/required-packages';
import { findDisagreements, findRouterDisagreements } from '../../openapi/agreement';
import { loadContract } from '../../openapi/load';
import { issuerFindings } from './check-issuer';
import { failed, passed } from './finding';
import type { Finding } from './finding';

/** `tillgate check`: examines what the API needs, and a token if one is given, and says how to fix what is wrong. */
export async function check(context: CommandContext, options: CommandOptions): Promise<number> {
  const { io } = context;
  const token = options.token === '-' ? (await io.readStdin()).trim() : options.token;
  let settings: Settings;
  try {
    settings = apiSettings(readSettings(io.env));
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const [fix, findings] = ['change the variable, then check again', error.problems];
    report(
      context,
      findings.map((problem) => failed('configuration', problem, fix)),
    );
    return EXIT.configuration;
  }
  const findings = [
    passed('configuration', 'every TILLGATE_* variable is in order'),
    contractFinding(),
    ...(await issuerFindings(io, settings, token)),
  ];
  report(context, findings);
  return findings.every(({ ok }) => ok) ? EXIT.ok : EXIT.failed;
}

function report(context: CommandContext, findings: readonly Finding[]): void {
  const ok = findings.every((finding) => finding.ok);
  print(context, { ok, findings }, findings.map(asText).join('\n'));
}

/** Text of tokens and of the server must not begin a line. */
function asText({ check: name, ok, detail, fix }: Finding): string {
  const lines = [`${ok ? 'ok    ' : 'failed'}  ${name}: ${detail}`, ...(fix === undefined ? [] : [`        ${fix}`])];
  return lines.map(escapeUnsafe).join('\n');
}

/**
 * Where the table of routes, the routers and openapi.yaml disagree; empty where they agree.
 *
 * @param file - default: the openapi.yaml of this package
 * @throws ConfigurationError when the contract cannot be read
 */
export function contractProblems(file?: string): readonly string[] {
  const document = loadContract(file);
  return [...findDisagreements(document, routes(), SCOPES), ...findRouterDisagreements(document, commerceRouter())];
}

/** Whether the routes of the scaffold, their scopes and openapi.yaml agree. */
export function contractFinding(file?: string): Finding {
  if (installedVersion('js-yaml') === undefined)
    return passed('contract', 'not checked: the scaffold is not installed');
  const problems = contractProblems(file);
  if (problems.length === 0) return passed('contract', 'routes, scopes and openapi.yaml agree');
  return failed('contract', problems.join('; '), 'change openapi.yaml or the table of resources until both agree');
}
