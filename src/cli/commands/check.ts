import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  adviceContext,
  attempt,
  discoverEndpoint,
  escapeUnsafe,
  isObject,
  loggableUrl,
  namesOfClaim,
  PRESETS,
  recognizeIssuer,
  scopeAdvice,
  scopeClaims,
} from 'tillgate/internal';
import { ConfigurationError, explain, type Auth, type Gate, type GateStatus, type OpaqueOptions } from 'tillgate';
import { readSettings, type Settings } from 'tillgate/env';
import { EXIT, type CliIo, type CommandContext, type CommandOptions } from '../command';
import { print } from '../output';
import { documentOf } from '../http';
import { apiSettings } from '../settings';
import { adviceFor, failedCheck, introspectionFix, tokenIn, withGate, wordAdvice } from './explain';

/** One line of the report. */
interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
  /** What to do; present when not ok, and where the check cannot know all. */
  readonly fix?: string;
}

const passed = (name: string, detail: string): Finding => ({ check: name, ok: true, detail });
const failed = (name: string, detail: string, fix: string): Finding => ({ check: name, ok: false, detail, fix });

/** `tillgate check`: examines what the API needs, and a token if one is given, and says how to fix what is wrong. */
export async function check(context: CommandContext, options: CommandOptions): Promise<number> {
  const { io } = context;
  const token = options.token && tokenIn(options.token === '-' ? await io.readStdin() : options.token);
  let settings: Settings;
  try {
    // An app without an issuer does not start: only tillgate dev sets the embedded one.
    settings = apiSettings(readSettings(io.env, { requireIssuer: !options.embedded }));
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const fixOf = (problem: string) => (problem.startsWith('TILLGATE_AUTH_URL: not set') ? EMBEDDED_FIX : CHANGE);
    const problems = error.problems.map((problem) => failed('configuration', problem, fixOf(problem)));
    return report(context, [...problems, ...keycloakFindings(io)], EXIT.configuration);
  }
  return report(context, [
    { ...passed('configuration', 'every TILLGATE_* variable is in order'), ...fromFile(context) },
    ...keycloakFindings(io),
    ...(await issuerFindings(io, settings, token)),
  ]);
}

const CHANGE = 'change the variable, then check again';
const EMBEDDED_FIX = 'set it where the API starts; check --embedded examines the token server of tillgate dev';

/** Names what the file `.env` alone sets: an app has it only where something reads that file. */
function fromFile({ io, given }: CommandContext): Pick<Finding, 'fix'> {
  const names = Object.keys(io.env).filter((name) => name.startsWith('TILLGATE_') && given[name] === undefined);
  const from = `${names.join(', ')}: set in .env alone, which plain node does not read: start the API with node --env-file=.env`;
  return names.length > 0 ? { fix: from } : {};
}

/** What the `keycloak.json` of keycloak-connect says in variables, for an app that is being moved. */
function keycloakFindings({ cwd, env }: CliIo): readonly Finding[] {
  if (env['TILLGATE_ISSUER'] !== undefined) return [];
  const file = attempt(() => JSON.parse(readFileSync(join(cwd, 'keycloak.json'), 'utf8')) as unknown);
  if (!isObject(file)) return [];
  const [server, realm, resource] = ['auth-server-url', 'realm', 'resource'].map((name) => file[name]);
  if (typeof server !== 'string' || typeof realm !== 'string') return [];
  const issuer = `${server.replace(/\/$/, '')}/realms/${encodeURIComponent(realm)}`;
  const detail = `TILLGATE_PRESET=keycloak TILLGATE_ISSUER=${issuer} TILLGATE_AUDIENCE=${String(resource)}`;
  const note = 'the audience is what your tokens have as aud: docs/issuers.md, "Keycloak"';
  return [passed('keycloak.json', `${detail}; ${note}`)];
}

function report(context: CommandContext, findings: readonly Finding[], failure: number = EXIT.failed): number {
  const ok = findings.every((finding) => finding.ok);
  print(context, { ok, findings }, findings.map(asText).join('\n'));
  return ok ? EXIT.ok : failure;
}

/** Text of tokens and of the server must not begin a line. */
function asText({ check: name, ok, detail, fix }: Finding): string {
  const lines = [`${ok ? 'ok    ' : 'failed'}  ${name}: ${detail}`, ...(fix === undefined ? [] : [`        ${fix}`])];
  return lines.map(escapeUnsafe).join('\n');
}

/** How long keys and generations may take to arrive, and how often the state is polled. */
const PATIENCE_MS = 6_000;
const LOOK_EVERY_MS = 25;

type Issuer = GateStatus['issuers'][number];

/** Examines the authorization server as the API would use it: metadata, clock, keys, generations, a token. */
async function issuerFindings(io: CliIo, settings: Settings, token?: string): Promise<readonly Finding[]> {
  const { opaque } = settings;
  const { fetch, difference } = watchClock(io.fetch);
  const server = { ...io, fetch };
  const { finding: metadata, jwksUri } = await metadataFinding(server, settings);
  if (metadata?.ok === false) return [metadata];
  return withGate(server, settings, async (gate) => {
    const issuer = await settled(gate);
    const introspection = opaque && (await introspectionFinding(gate, opaque, settings));
    return [
      ...(metadata ? [metadata] : []),
      ...(issuer ? presetFindings(issuer, jwksUri, token) : []),
      ...clockFindings(difference(), settings),
      ...(issuer ? [keysFinding(issuer, settings, jwksUri), ...generationsFindings(issuer, settings)] : []),
      ...(introspection ? [introspection] : []),
      ...(token === undefined ? [] : [await tokenFinding(gate, token, { ...settings, jwksUri }, introspection?.ok)]),
    ];
  });
}

/** By how much the clock of a server is ahead of this one: between these two, in ms. */
interface ClockDifference {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** The same `fetch`, and what the `Date` of its responses (RFC 9110 section 6.6.1) says about the clock of the server. */
function watchClock(fetch: CliIo['fetch']) {
  let difference: ClockDifference | undefined;
  const watched: CliIo['fetch'] = async (url, init) => {
    const sentMs = Date.now();
    const response = await fetch(url, init);
    const dateMs = Date.parse(response.headers.get('date') ?? '');
    // The header has whole seconds; a cache on the way keeps that of the first response.
    if (!Number.isNaN(dateMs) && !response.headers.has('age')) {
      difference = { leastMs: dateMs - Date.now(), mostMs: dateMs + 1000 - sentMs };
    }
    return response;
  };
  return { fetch: watched, difference: () => difference };
}

function clockFindings(
  difference: ClockDifference | undefined,
  { clockToleranceSeconds }: Settings,
): readonly Finding[] {
  if (!difference) return [];
  const { leastMs, mostMs } = difference;
  const toleranceMs = 1000 * clockToleranceSeconds;
  const where = leastMs > toleranceMs ? 'ahead of' : mostMs < -toleranceMs ? 'behind' : undefined;
  if (where === undefined) {
    return [passed('clock', `within ${clockToleranceSeconds} s of the clock of the authorization server`)];
  }
  const seconds = Math.abs(Math.round((leastMs + mostMs - 1) / 2000));
  const detail = `the clock of the authorization server is ${seconds} s ${where} this one`;
  return [failed('clock', detail, 'synchronize both clocks (NTP), or raise TILLGATE_CLOCK_TOLERANCE_SECONDS')];
}

/** With a token its shape says more than the URLs of the issuer. */
function presetFindings(
  { issuer, preset: { name: preset, chosenBy } }: Issuer,
  jwksUri: string | undefined,
  token: string | undefined,
): readonly Finding[] {
  if (chosenBy === 'issuer') {
    return [passed('preset', `${preset}, by the issuer's URL; TILLGATE_PRESET=${preset} makes sure`)];
  }
  const recognized = token === undefined ? recognizeIssuer(issuer, jwksUri) : undefined;
  if (!recognized || recognized.preset === preset) return [];
  const advice = `if its tokens are refused, set TILLGATE_PRESET=${recognized.preset}`;
  return [passed('preset', `${preset}, and ${issuer} looks like ${recognized.preset}: ${advice}`)];
}

/** Whether the metadata can be used, and where it says that the keys are. It is not read where the key set has a URL of its own. */
async function metadataFinding(io: CliIo, settings: Settings): Promise<{ finding?: Finding; jwksUri?: string }> {
  const { issuer = '', authUrl = issuer, jwksUri, keys } = settings;
  if (keys || jwksUri !== undefined) return jwksUri === undefined ? {} : { jwksUri };
  try {
    const found = await discoverEndpoint('jwks_uri', documentOf(io, settings));
    const detail = `metadata at ${authUrl} names ${issuer} and the key set ${found}`;
    return { finding: passed('issuer', detail), jwksUri: found };
  } catch (error) {
    const { message } = error as Error;
    return { finding: failed('issuer', message, connectionFix(message) ?? metadataFix(io, message)) };
  }
}

function metadataFix({ programName }: CliIo, message: string): string {
  if (message.includes('behind a proxy')) return 'repair that at the server: no variable helps';
  return message.includes('names another issuer')
    ? 'set TILLGATE_ISSUER to the issuer that it names: its tokens carry that one, byte for byte'
    : `check TILLGATE_ISSUER and TILLGATE_AUTH_URL, and that the server runs (${programName} dev starts an embedded one)`;
}

/** The variable that an outgoing connection needs; `undefined`: none that shows. */
function connectionFix(message: string): string | undefined {
  const [what] = /NODE_\w+/.exec(message) ?? [];
  return what && `set ${what} where the API starts: docs/operations.md, "Connections to the authorization server"`;
}

function keysFinding({ keys }: Issuer, { authUrl, jwksUri, keys: given }: Settings, discovered?: string): Finding {
  if (given) return passed('keys', 'none (TILLGATE_KEYS=none): only opaque tokens are accepted');
  if (keys.state === 'fresh') return passed('keys', `${keys.keys} can verify access tokens`);
  const host = discovered && new URL(discovered).host;
  const fix =
    jwksUri === undefined && authUrl !== undefined && host !== new URL(authUrl).host
      ? `the metadata names another host than TILLGATE_AUTH_URL, ${host}: if it cannot be reached from here, set ` +
        'TILLGATE_JWKS_URI to the address that can: docs/issuers.md, "Two host names"'
      : (connectionFix(keys.lastError ?? '') ??
        (/is not a key set|has no key/.test(keys.lastError ?? '')
          ? 'the key set needs at least one public signature key (RFC 7517)'
          : 'check that the key set can be fetched from here'));
  return failed('keys', keys.lastError ?? keys.state, fix);
}

/** None where there is nothing to read: the check is off, or generations are learned from tokens only. */
function generationsFindings({ generations, preset }: Issuer, settings: Settings): readonly Finding[] {
  if (generations === undefined) return [];
  if (generations.source === 'fresh') return [passed('generations', `${generations.floors} floors read`)];
  if (generations.source === 'none') return withoutSource(preset, settings);
  const fix =
    'check TILLGATE_GENERATIONS: credentials belong in its URL or in headers; TILLGATE_ADMIN_TOKEN is sent to the embedded token server alone';
  const detail = generations.lastError ?? `${loggableUrl(settings.generationSource ?? '')} is ${generations.source}`;
  return [failed('generations', detail, fix)];
}

/** How changes of credentials become known. Times of issue are compared with the floors of a source; no token raises one. */
function withoutSource({ name }: Issuer['preset'], { generationClaim }: Settings): readonly Finding[] {
  const claim = [generationClaim || PRESETS[name as keyof typeof PRESETS].stampedClaim].flat().join('.');
  const known = claim === 'iat' ? '' : `a change of a credential becomes known with a token that has a higher ${claim}`;
  const until = `${known && `; without ${claim} `}tokens are accepted until they expire`;
  return [passed('generations', `no source (TILLGATE_GENERATIONS): ${known}${generationClaim && known ? '' : until}`)];
}

/** State of the issuer once it is ready or has failed for the first time. */
async function settled(gate: Gate): Promise<Issuer | undefined> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const { ready, issuers } = gate.status();
    const [issuer] = issuers;
    const broken = issuer?.keys.lastError ?? issuer?.generations?.lastError;
    // One failure may come before the response that tells about the other.
    const isOpen = issuer?.keys.state === 'starting' && issuer.keys.lastError === undefined;
    if (ready || (broken !== undefined && !isOpen) || Date.now() > deadline) return issuer;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

const ENDPOINT_FIX =
  'set TILLGATE_INTROSPECTION_URL to the introspection endpoint of the authorization server (RFC 7662)';

/** Whether the introspection endpoint can be found, accepts the credential of the API, and knows no made-up token. */
async function introspectionFinding(gate: Gate, { clientId }: OpaqueOptions, settings: Settings): Promise<Finding> {
  const explanation = await explain(`made-up-by-tillgate-check-${randomUUID()}`, { gate });
  const { reason, detail = '' } = failedCheck(explanation);
  const accepted = passed('introspection', `the endpoint accepts the client ${clientId}`);
  if (reason === 'inactive') return { ...accepted, fix: 'whether it may introspect is seen with a real --token only' };
  const wrong = 'the endpoint says that a made-up token is active';
  if (reason !== 'introspection_unavailable') return failed('introspection', wrong, ENDPOINT_FIX);
  const shown = detail.replace(/(responded with \d+) \(\w+\)$/, '$1');
  return failed('introspection', shown, introspectionFix(detail, settings) ?? ENDPOINT_FIX);
}

/** Whether the API accepts a token, with the claims that it reads. */
async function tokenFinding(gate: Gate, token: string, settings: Settings, acceptsClient = false): Promise<Finding> {
  const explanation = await explain(token, { gate });
  const { auth } = explanation;
  if (!auth) {
    const { reason, detail } = failedCheck(explanation);
    const ofToken = acceptsClient && /responded with 5\d\d$/.test(detail ?? '') ? OF_THIS_TOKEN : '';
    return failed('token', `${reason}: ${detail}${ofToken}`, adviceFor(explanation, token, settings) ?? '');
  }
  const { clientIdClaims, stampedClaim } = PRESETS[gate.status().issuers[0]!.preset.name as keyof typeof PRESETS];
  const from = [settings.generationClaim || (Object.hasOwn(auth.claims, stampedClaim) ? stampedClaim : 'iat')];
  const client = [...clientIdClaims, 'client_id'].find((name) => Object.hasOwn(auth.claims, name)) ?? 'sub';
  const generation = auth.generation === undefined ? 'not checked' : `${auth.generation} (${from.flat().join('.')})`;
  const context = adviceContext(token, settings);
  const advice = auth.scopes.length === 0 ? scopeAdvice(auth.claims, context) : undefined;
  const scopes = `scopes ${auth.scopes.join(' ') || 'none'} (${scopesFrom(auth, context)})`;
  const more = advice ? `; ${wordAdvice(advice)}` : '';
  return passed('token', `accepted: client ${auth.clientId} (${client}), ${scopes}, generation ${generation}${more}`);
}

/** Some servers respond with 500 for a token whose client was deleted. */
const OF_THIS_TOKEN = ' for this token, though it accepts the client';

const MAX_NAMES = 10;

/** The claims that scopes were read from, and the names in them where a map decides. */
function scopesFrom({ claims }: Auth, context: ReturnType<typeof adviceContext>): string {
  const read = scopeClaims(claims, context);
  const present = read.filter((claim) => namesOfClaim(claims, claim).length > 0);
  const from = (present.length > 0 ? present : read).map(({ path }) => path.join('.')).join(', ') || 'none';
  if (!context.scopes?.map) return from;
  const names = present.flatMap((claim) => namesOfClaim(claims, claim)).slice(0, MAX_NAMES);
  return `${from}: ${names.join(', ') || 'no names'}; TILLGATE_SCOPE_MAP`;
}
