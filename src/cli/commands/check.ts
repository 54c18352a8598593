import { ConfigurationError } from '../../core/configuration-error';
import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import type { CommandContext } from '../command';
import { EXIT } from '../exit';
import { contractFinding, failed, issuerFindings, passed } from '../findings';
import type { Finding } from '../findings';
import { print } from '../output';
import { apiSettings } from '../settings';

/** `tillgate check`: examines what the API needs, and says how to fix what is missing. */
export async function check(context: CommandContext): Promise<number> {
  const { io } = context;
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
    ...(await issuerFindings(io, settings)),
  ];
  report(context, findings);
  return findings.every(({ ok }) => ok) ? EXIT.ok : EXIT.failed;
}

function report(context: CommandContext, findings: readonly Finding[]): void {
  const ok = findings.every((finding) => finding.ok);
  print(context, { ok, findings }, findings.map(asText).join('\n'));
}

function asText({ check: name, ok, detail, fix }: Finding): string {
  return `${ok ? 'ok    ' : 'failed'}  ${name}: ${detail}${fix === undefined ? '' : `\n        ${fix}`}`;
}
