import { ConfigurationError, readSettings } from '../../index';
import type { Settings } from '../../index';
import { print } from '../answer';
import type { CommandContext } from '../command';
import { contractFinding, failed, passed } from '../findings';
import type { Finding } from '../findings';
import { EXIT } from '../exit';
import { issuerFindings } from '../issuer-findings';
import { apiSettings } from '../settings';

/** `tillgate check`: examines all that the API needs, and says what to do about what is missing. */
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
