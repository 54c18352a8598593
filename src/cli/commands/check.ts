import { ConfigurationError } from '../../core/configuration-error';
import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import type { CommandContext } from '../command';
import { EXIT, print } from '../command';
import { apiSettings } from '../settings';
import { commerceRouter } from '../../app/commerce/router';
import { routes, SCOPES } from '../../app/commerce/routes';
import { installedVersion } from '../../core/required-packages';
import { isSecureUrl } from '../../core/urls';
import type { Gate, GateStatus } from '../../index';
import { findDisagreements, findRouterDisagreements } from '../../openapi/agreement';
import { loadContract } from '../../openapi/load';
import { discoverJwksUri } from '../../token/keys/discovery';
import { openGate } from '../gate';
import type { CliIo } from '../io';

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

/** One line of the report of `tillgate check`. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
  /** What to do; present when not ok. */
  readonly fix?: string;
}

export function passed(check: string, detail: string): Finding {
  return { check, ok: true, detail };
}

export function failed(check: string, detail: string, fix: string): Finding {
  return { check, ok: false, detail, fix };
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
export function contractFinding(): Finding {
  if (installedVersion('js-yaml') === undefined)
    return passed('contract', 'not checked: the scaffold is not installed');
  const problems = contractProblems();
  if (problems.length === 0) return passed('contract', 'routes, scopes and openapi.yaml agree');
  return failed('contract', problems.join('; '), 'change openapi.yaml or the table of resources until both agree');
}

/** How long keys and generations may take to arrive, and how often the state is polled. */
const PATIENCE_MS = 6_000;
const LOOK_EVERY_MS = 25;

type Issuer = GateStatus['issuers'][number];

/** Examines the authorization server as the API would use it: metadata, keys, generations. */
export async function issuerFindings(io: CliIo, settings: Settings): Promise<readonly Finding[]> {
  const metadata = await metadataFinding(io, settings);
  if (!metadata.ok) return [metadata];
  const { gate, close } = openGate(io, settings);
  try {
    const issuer = await settled(gate);
    return issuer ? [metadata, keysFinding(issuer), generationsFinding(issuer, settings)] : [metadata];
  } finally {
    await close();
  }
}

async function metadataFinding({ fetch, programName }: CliIo, settings: Settings): Promise<Finding> {
  const { issuer = '', authUrl = issuer, jwksUri, allowHttp } = settings;
  if (jwksUri !== undefined) return passed('issuer', `${issuer}, keys from ${jwksUri} without discovery`);
  try {
    const found = await discoverJwksUri({
      issuer,
      authUrl,
      fetch,
      signal: AbortSignal.timeout(5_000),
      maxBytes: 1_048_576,
      checkUrl(url) {
        if (!allowHttp && !isSecureUrl(url)) throw new TypeError('not https');
      },
    });
    return passed('issuer', `metadata at ${authUrl} names ${issuer} and the key set ${found}`);
  } catch (error) {
    const fix = `check that it runs (${programName} dev starts an embedded one), and that TILLGATE_ISSUER is its iss to the byte`;
    return failed('issuer', (error as Error).message, fix);
  }
}

function keysFinding({ keys }: Issuer): Finding {
  if (keys.state === 'fresh') return passed('keys', `${keys.keys} can verify access tokens`);
  return failed('keys', keys.lastError ?? keys.state, 'the key set needs at least one public signature key (RFC 7517)');
}

function generationsFinding({ generations }: Issuer, settings: Settings): Finding {
  if (generations === undefined) return passed('generations', 'the check is off: tokens live until they expire');
  if (generations.source === 'none' && settings.generationClaim === 'iat') {
    const detail =
      'TILLGATE_GENERATION_CLAIM=iat compares with floors of a source, and there is none: nothing is checked';
    return failed('generations', detail, 'set TILLGATE_GENERATIONS, or TILLGATE_GENERATION_CLAIM=off to say so');
  }
  if (generations.source === 'none') return passed('generations', 'no source: learned from tokens only');
  if (generations.source === 'fresh') return passed('generations', `${generations.floors} floors read`);
  const fix = 'check TILLGATE_GENERATIONS, and TILLGATE_ADMIN_TOKEN where the token server asks for one';
  return failed('generations', generations.lastError ?? `${shown(settings)} is ${generations.source}`, fix);
}

/** URL of the source without its credentials. */
function shown({ generationSource = '' }: Settings): string {
  return generationSource.replace(/\/\/.*@/, '//');
}

/** State of the issuer once it is ready or has failed for the first time. */
async function settled(gate: Gate): Promise<Issuer | undefined> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const { ready, issuers } = gate.status();
    const [issuer] = issuers;
    const broken = issuer?.keys.lastError ?? issuer?.generations?.lastError;
    if (ready || broken !== undefined || Date.now() > deadline) return issuer;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
