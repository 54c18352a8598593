import { isSecureUrl } from '../../core/urls';
import type { Gate, GateStatus } from '../../index';
import type { Settings } from '../../settings/settings';
import { discoverEndpoint } from '../../token/keys/discovery';
import type { DiscoveryOptions } from '../../token/keys/discovery';
import { PRESETS } from '../../token/presets';
import { recognizeIssuer } from '../../token/recognize';
import { openGate } from '../gate';
import type { CliIo } from '../io';
import { introspectionFinding } from './check-introspection';
import { tokenFinding } from './check-token';
import { failed, passed } from './finding';
import type { Finding } from './finding';

/** How long keys and generations may take to arrive, and how often the state is polled. */
const PATIENCE_MS = 6_000;
const LOOK_EVERY_MS = 25;

type Issuer = GateStatus['issuers'][number];

/** Examines the authorization server as the API would use it: metadata, clock, keys, generations, a token. */
export async function issuerFindings(io: CliIo, settings: Settings, token?: string): Promise<readonly Finding[]> {
  const { introspection } = settings;
  const server = withDate(io);
  const { finding: metadata, jwksUri } = await metadataFinding(server.io, settings);
  if (!metadata.ok) return [metadata];
  const { gate, close } = openGate(server.io, settings);
  try {
    const issuer = await settled(gate);
    const findings = [
      metadata,
      ...presetFindings(settings, jwksUri, token),
      ...clockFindings(server.aheadMs(), settings),
      ...(issuer ? [keysFinding(issuer), generationsFinding(issuer, settings)] : []),
      ...(introspection ? [await introspectionFinding(documentOf(server.io, settings), introspection)] : []),
    ];
    return token === undefined ? findings : [...findings, await tokenFinding(gate, token, settings)];
  } finally {
    await close();
  }
}

/** The same, with a record of how far the clock of the server is ahead of this one (RFC 9110 section 6.6.1). */
function withDate(io: CliIo): { readonly io: CliIo; readonly aheadMs: () => number | undefined } {
  let aheadMs: number | undefined;
  const fetch: typeof io.fetch = async (input, init) => {
    const response = await io.fetch(input, init);
    const date = Date.parse(response.headers.get('date') ?? '');
    if (!Number.isNaN(date)) aheadMs ??= date - Date.now();
    return response;
  };
  return { io: { ...io, fetch }, aheadMs: () => aheadMs };
}

/** A Date header has whole seconds. */
const DATE_RESOLUTION_MS = 1_000;

function clockFindings(aheadMs: number | undefined, { clockToleranceSeconds }: Settings): readonly Finding[] {
  if (aheadMs === undefined) return [];
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  if (Math.abs(aheadMs) <= clockToleranceSeconds * 1000 + DATE_RESOLUTION_MS) {
    return [passed('clock', `within ${clockToleranceSeconds} s of the clock of the authorization server`)];
  }
  const detail = `the clock of the authorization server is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} this one`;
  return [failed('clock', detail, 'synchronize both clocks (NTP), or raise TILLGATE_CLOCK_TOLERANCE_SECONDS')];
}

/** With a token its shape says more than the URLs of the issuer. */
function presetFindings(
  settings: Settings,
  jwksUri: string | undefined,
  token: string | undefined,
): readonly Finding[] {
  const { issuer = '', preset } = settings;
  const recognized = token === undefined ? recognizeIssuer(issuer, jwksUri) : undefined;
  if (!recognized || recognized.preset === preset) return [];
  const advice = `if its tokens are refused, set TILLGATE_PRESET=${recognized.preset}`;
  return [passed('preset', `${preset}, and ${issuer} looks like ${recognized.preset}: ${advice}`)];
}

/** What the metadata says: whether it can be used, and where the keys are. */
interface Metadata {
  readonly finding: Finding;
  readonly jwksUri?: string;
}

async function metadataFinding(io: CliIo, settings: Settings): Promise<Metadata> {
  const { issuer = '', authUrl = issuer, jwksUri } = settings;
  if (jwksUri !== undefined) {
    return { finding: passed('issuer', `${issuer}, keys from ${jwksUri} without discovery`), jwksUri };
  }
  try {
    const found = await discoverEndpoint('jwks_uri', documentOf(io, settings));
    const detail = `metadata at ${authUrl} names ${issuer} and the key set ${found}`;
    return { finding: passed('issuer', detail), jwksUri: found };
  } catch (error) {
    const { message } = error as Error;
    const fix = message.includes('names another issuer')
      ? 'set TILLGATE_ISSUER to the issuer that it names: its tokens carry that one, byte for byte'
      : `check TILLGATE_AUTH_URL, and that the server runs (${io.programName} dev starts an embedded one)`;
    return { finding: failed('issuer', message, fix) };
  }
}

/** How documents of the authorization server are fetched: like the gate does. */
function documentOf({ fetch }: CliIo, { issuer = '', authUrl = issuer, allowHttp }: Settings): DiscoveryOptions {
  return {
    issuer,
    authUrl,
    fetch,
    signal: AbortSignal.timeout(5_000),
    maxBytes: 1_048_576,
    checkUrl(url) {
      if (!allowHttp && !isSecureUrl(url)) throw new TypeError('not https');
    },
  };
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
  if (
    generations.source === 'none' &&
    PRESETS[settings.preset].generationClaim === 'iat' &&
    !settings.generationClaim
  ) {
    return passed('generations', 'no source (TILLGATE_GENERATIONS): tokens are accepted until they expire');
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
