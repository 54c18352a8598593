import { authenticateOptions, readSettings, type Settings } from 'tillgate/env';
import {
  adviceContext,
  attempt,
  configurationAdvice,
  discoverEndpoint,
  escapeUnsafe,
  isObject,
  parseToken,
  scopeAdvice,
} from 'tillgate/internal';
import { authenticate, explain, REASONS, type Explanation, type Gate, type Reason } from 'tillgate';
import { EXIT, usageError, type CliIo, type CommandContext, type CommandOptions } from '../command';
import { print, table } from '../output';
import { documentOf } from '../http';
import { apiSettings } from '../settings';
import { authorizedGenerations } from '../sources';

/** `tillgate explain <token>`: every check in order, and the first that fails. */
export async function explainToken(context: CommandContext, options: CommandOptions, given: string): Promise<number> {
  const { io } = context;
  const token = tokenIn(given === '-' ? await io.readStdin() : given);
  // An app without an issuer does not start: the embedded token server counts on request only.
  const settings = apiSettings(readSettings(io.env, { requireIssuer: !options.embedded }));
  const scopes = options.scope?.split(' ').filter((scope) => scope !== '');
  const explanation = await withGate(io, settings, (gate) => explain(token, { gate, scopes }));
  // Vendors are recognized by the URL of the key set too.
  const isLookedUp = !explanation.accepted && settings.jwksUri === undefined;
  const found = isLookedUp && (await discoverEndpoint('jwks_uri', documentOf(io, settings)).catch(() => undefined));
  const known = found ? { ...settings, jwksUri: found } : settings;
  const result = { ...explanation, ...details(explanation, token, scopes, known) };
  print(context, result, asText(result));
  return explanation.accepted ? EXIT.ok : EXIT.failed;
}

/**
 * The token in what was pasted: with `Bearer`, in quotes, with line breaks, or in a token response.
 *
 * @throws CliError when it is not whole, or the response has none
 */
export function tokenIn(pasted: string): string {
  const response = attempt(() => JSON.parse(pasted) as unknown);
  if (isObject(response)) {
    if (typeof response['access_token'] === 'string') return tokenIn(response['access_token']);
    throw usageError('this JSON has no access_token: give the response of the token endpoint, or the token');
  }
  const token = pasted.replace(/["'`\s]+/g, ' ').replace(/^ ?(Authorization: )?((Bearer|DPoP) )?/i, '');
  if (/\.{3}|…/.test(token)) {
    throw usageError('the token is cut where it has "...": copy all of it, or pipe it into explain -');
  }
  // Not in the text [object Object], which a client sends that has no token.
  return token.replace(/ (?!Object\])/g, '');
}

/** What the checks alone do not say: what to change, the claims, and the scopes that are missing. */
function details(explanation: Explanation, token: string, scopes: readonly string[] | undefined, settings: Settings) {
  const { auth } = explanation;
  const fix = adviceFor(explanation, token, settings);
  const claims = auth?.claims ?? attempt(() => parseToken(token).claims);
  const missingScopes = auth && scopes?.filter((scope) => !auth.scopes.includes(scope));
  return { ...(fix && { fix }), ...(claims && { claims }), ...(missingScopes?.length && { missingScopes }) };
}

function asText(result: Explanation & ReturnType<typeof details>): string {
  const { accepted, status, checks, auth, fix, claims, missingScopes } = result;
  const rows = checks.map(({ check, outcome, reason, detail }) => {
    return [check, outcome, reason ? `${reason}: ${detail}` : (detail ?? '')];
  });
  const lines = [
    ...(claims ? [`${auth ? 'claims' : 'claims, not verified'}: ${JSON.stringify(claims)}`] : []),
    ...(missingScopes ? [`missing scopes: ${missingScopes.join(' ')}`] : []),
    ...(fix ? [`what to do: ${fix}`] : []),
    accepted ? `accepted: client ${auth?.clientId}, scopes ${auth?.scopes.join(' ')}` : `refused with ${status}`,
  ];
  return [table(rows), ...lines.map(escapeUnsafe)].join('\n');
}

/** Opens the gate that the API would have, for some work. It logs nothing: its state is what the work reads. */
export async function withGate<Result>(
  { fetch }: CliIo,
  settings: Settings,
  work: (gate: Gate) => Promise<Result>,
): Promise<Result> {
  const generationSource = authorizedGenerations(settings, { fetch });
  const gate = authenticate({
    ...authenticateOptions(settings),
    fetch,
    logger: false,
    ...(generationSource && { generationSource }),
  });
  try {
    return await work(gate);
  } finally {
    await gate.close();
    await generationSource?.close?.();
  }
}

/** The check that refuses a token. */
export function failedCheck({ checks }: Explanation): Partial<Explanation['checks'][number]> {
  return checks.find(({ outcome }) => outcome === 'failed') ?? {};
}

/** What to do about a refused token; `undefined` for an accepted one. */
export function adviceFor(explanation: Explanation, token: string, settings: Settings): string | undefined {
  const { auth } = explanation;
  const { reason, detail = '' } = failedCheck(explanation);
  // Of a number that the publisher does not publish, and of one that is a text.
  if (reason === undefined || /different numbers|a text of digits/.test(detail)) return reason && detail;
  if (reason === 'introspection_unavailable') return introspectionFix(detail, settings) ?? REASONS[reason].operator;
  // An opaque token shows no claims: those of the introspection response count.
  const ofScopes =
    reason === 'insufficient_scope' && auth ? scopeAdvice(auth.claims, adviceContext(token, settings)) : undefined;
  return ofScopes ? wordAdvice(ofScopes) : adviceOn(reason, token, settings, detail);
}

/** What to do where the introspection endpoint refuses the client of the API; `undefined`: it does not. */
export function introspectionFix(detail: string, { preset }: Settings): string | undefined {
  if (detail.endsWith('(unauthorized_client)')) return MAY_NOT_INTROSPECT;
  if (!/responded with 40[013](?: \(\w+\))?$/.test(detail)) return undefined;
  return preset === 'identityserver' ? `${CREDENTIAL_FIX}; ${API_RESOURCE}` : CREDENTIAL_FIX;
}

const MAY_NOT_INTROSPECT =
  'the client may not introspect tokens: allow it at the authorization server (OpenIddict: Permissions.Endpoints.Introspection)';
const CREDENTIAL_FIX =
  'set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET to a client of the authorization server that may introspect tokens';
const API_RESOURCE = 'at IdentityServer that is the name of the API resource and an ApiSecret of it';

/** What to do about a token that is refused for a reason. */
export function adviceOn(reason: Reason, token: string, settings: Settings, detail?: string): string {
  const advice = configurationAdvice({ reason, privateDetail: detail }, token, adviceContext(token, settings));
  const text = advice ? wordAdvice(advice) : REASONS[reason].operator;
  const isDefault = reason === 'wrong_audience' && settings.audience === settings.baseUrl;
  return isDefault ? `${text}; ${settings.audience} is the default, the value of TILLGATE_BASE_URL` : text;
}

type Advice = NonNullable<ReturnType<typeof configurationAdvice>>;

/** Advice in one sentence, with the variable that sets its option. */
export function wordAdvice({ why, option, value, otherwise }: Advice): string {
  const ways = [...(option ? [`set ${assignment(option, value)}`] : []), ...(otherwise ? [otherwise] : [])];
  return ways.length === 0 ? why : `${why}: ${ways.join(', or ')}`;
}

const VARIABLES = {
  issuer: 'TILLGATE_ISSUER',
  audience: 'TILLGATE_AUDIENCE',
  preset: 'TILLGATE_PRESET',
  maxTokenAgeSeconds: 'TILLGATE_MAX_TOKEN_AGE_SECONDS',
  'scopes.from': 'TILLGATE_SCOPE_CLAIMS',
  'scopes.map': 'TILLGATE_SCOPE_MAP',
} as const;

function assignment(option: NonNullable<Advice['option']>, value: unknown): string {
  if (option === 'opaque') return 'TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET';
  return `${VARIABLES[option]}=${textOf(value)}`;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((name) => typeof name === 'string')) return value.join(',');
  const json = JSON.stringify(value);
  // Pasted into a shell, names of the token must stay text.
  return typeof value === 'object' ? `'${json.replaceAll("'", `'\\''`)}'` : json;
}
