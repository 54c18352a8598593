import { REASON_ADVICE } from '../../core/reason-advice';
import type { Auth, Explanation, Gate, Reason } from '../../index';
import { explain } from '../../index';
import type { Settings } from '../../settings/settings';
import { configurationAdvice, scopeAdvice, scopePaths } from '../../token/advice';
import type { AdviceContext, AdvisedOption } from '../../token/advice';
import { isJwsShaped } from '../../token/jws';
import { PRESETS } from '../../token/presets';
import type { Preset } from '../../token/presets';
import { readScopeRule } from '../../token/scope-options';
import { namesAt } from '../../token/scopes';
import { failed, passed } from './finding';
import type { Finding } from './finding';

/** The variable of each option that advice names. */
const VARIABLES: Readonly<Record<AdvisedOption, string>> = {
  issuer: 'TILLGATE_ISSUER',
  audience: 'TILLGATE_AUDIENCE',
  preset: 'TILLGATE_PRESET',
  generationClaim: 'TILLGATE_GENERATION_CLAIM',
  maxTokenAgeSeconds: 'TILLGATE_MAX_TOKEN_AGE_SECONDS',
};

/** What to do about a refused token; `undefined` for an accepted one. */
export function adviceFor({ checks, auth }: Explanation, token: string, settings: Settings): string | undefined {
  const reason = checks.find(({ outcome }) => outcome === 'failed')?.reason;
  // An opaque token shows no claims: those of the introspection response count.
  const ofScopes =
    reason === 'insufficient_scope' && auth ? scopeAdvice(auth.claims, contextOf(token, settings)) : undefined;
  return ofScopes ?? (reason && adviceOn(reason, token, settings));
}

/** What to do about a token that is refused for a reason. */
export function adviceOn(reason: Reason, token: string, settings: Settings): string {
  return configurationAdvice(reason, token, contextOf(token, settings)) ?? REASON_ADVICE[reason].operator;
}

function contextOf(token: string, { issuer = '', preset: name, scopes, introspection }: Settings): AdviceContext {
  const preset: Preset = PRESETS[name];
  const scopeClaims = isJwsShaped(token) ? preset.scopeClaims : [...preset.scopeClaims, 'scope'];
  return {
    issuer,
    introspection,
    preset: { ...preset, scopeClaims },
    scopes: scopes && readScopeRule(scopes),
    set: (option, value) => `set ${VARIABLES[option]}=${value}`,
  };
}

/** Whether the API accepts a token, with the claims that it reads. */
export async function tokenFinding(gate: Gate, token: string, settings: Settings): Promise<Finding> {
  const explanation = await explain(token, { gate });
  const { auth, checks } = explanation;
  if (!auth) {
    const { reason, detail } = checks.find(({ outcome }) => outcome === 'failed') ?? {};
    return failed('token', `${reason}: ${detail}`, adviceFor(explanation, token, settings) ?? '');
  }
  const { clientIdClaims, generationClaim } = PRESETS[settings.preset];
  const client = clientIdClaims.find((name) => Object.hasOwn(auth.claims, name)) ?? 'client_id';
  const generation =
    auth.generation === undefined
      ? 'not checked'
      : `${auth.generation} (${settings.generationClaim || generationClaim})`;
  const context = contextOf(token, settings);
  const advice = auth.scopes.length === 0 ? scopeAdvice(auth.claims, context) : undefined;
  const scopes = `scopes ${auth.scopes.join(' ') || 'none'} (${scopesFrom(auth, context)})`;
  return passed(
    'token',
    `accepted: client ${auth.clientId} (${client}), ${scopes}, generation ${generation}${advice ? `; ${advice}` : ''}`,
  );
}

const MAX_NAMES = 10;

/** The claims that scopes were read from, and the names in them where a map decides. */
function scopesFrom({ claims }: Auth, context: AdviceContext): string {
  const paths = scopePaths(claims, context);
  const present = paths.filter((path) => namesAt(claims, path).length > 0);
  const from =
    present.map((path) => path.join('.')).join(', ') || paths.map((path) => path.join('.')).join(', ') || 'none';
  if (!context.scopes?.map) return from;
  const names = present.flatMap((path) => namesAt(claims, path)).slice(0, MAX_NAMES);
  return `${from}: ${names.join(', ') || 'no names'}; TILLGATE_SCOPE_MAP`;
}
