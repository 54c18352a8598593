import { authenticateOptions, readSettings } from 'tillgate/env';
import type { Settings } from 'tillgate/env';
import {
  adviceContext,
  attempt,
  configurationAdvice,
  escapeUnsafe,
  isObject,
  parseToken,
  scopeAdvice,
} from 'tillgate/internal';
import { authenticate, explain, REASONS } from 'tillgate';
import type { Explanation, Gate, Reason } from 'tillgate';
import { CliError, EXIT, print, table } from '../command';
import type { CliIo, CommandContext, CommandOptions } from '../command';
import { apiSettings } from '../settings';
import { authorizedGenerations } from '../sources';

/** `tillgate explain <token>`: every check in order, and the first that fails. */
export async function explainToken(context: CommandContext, options: CommandOptions, given: string): Promise<number> {
  const { io } = context;
  const token = tokenIn(given === '-' ? await io.readStdin() : given);
  const settings = apiSettings(readSettings(io.env));
  const scopes = options.scope?.split(' ').filter((scope) => scope !== '');
  const explanation = await withGate(io, settings, (gate) => explain(token, { gate, scopes }));
  const result = { ...explanation, ...details(explanation, token, scopes, settings) };
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
    throw new CliError(
      'this JSON has no access_token: give the response of the token endpoint, or the token',
      EXIT.usage,
    );
  }
  const token = pasted.replace(/["'`\s]+/g, ' ').replace(/^ ?(Authorization: )?((Bearer|DPoP) )?/i, '');
  if (/\.{3}|…/.test(token)) {
    throw new CliError('the token is cut where it has "...": copy all of it, or pipe it into explain -', EXIT.usage);
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
  const { reason, detail } = failedCheck(explanation);
  // The detail says what to do where issuer and publisher use different numbers.
  if (reason === 'superseded' && detail?.includes('different numbers')) return detail;
  // An opaque token shows no claims: those of the introspection response count.
  const ofScopes =
    reason === 'insufficient_scope' && auth ? scopeAdvice(auth.claims, adviceContext(token, settings)) : undefined;
  return ofScopes ? wordAdvice(ofScopes) : reason && adviceOn(reason, token, settings);
}

/** What to do about a token that is refused for a reason. */
export function adviceOn(reason: Reason, token: string, settings: Settings): string {
  const advice = configurationAdvice(reason, token, adviceContext(token, settings));
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
  const names = Array.isArray(value) && value.every((name) => typeof name === 'string') ? value : undefined;
  if (names) return names.join(',');
  const json = JSON.stringify(value);
  return typeof value === 'object' ? shellQuoted(json) : json;
}

/** Pasted into a shell, names of the token must stay text. */
function shellQuoted(text: string): string {
  return `'${text.replace(/'/g, `'\\''`)}'`;
}
