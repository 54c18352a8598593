import { REASON_ADVICE } from '../../core/reason-advice';
import type { Explanation, Gate, Reason } from '../../index';
import { explain } from '../../index';
import type { Settings } from '../../settings/settings';
import { configurationAdvice, scopeAdvice } from '../../token/advice';
import type { AdvisedOption } from '../../token/advice';
import { PRESETS } from '../../token/presets';
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
export function adviceFor({ checks }: Explanation, token: string, settings: Settings): string | undefined {
  const reason = checks.find(({ outcome }) => outcome === 'failed')?.reason;
  return reason && adviceOn(reason, token, settings);
}

/** What to do about a token that is refused for a reason. */
export function adviceOn(reason: Reason, token: string, settings: Settings): string {
  const { issuer = '', preset } = settings;
  const set = (option: AdvisedOption, value: string): string => `set ${VARIABLES[option]}=${value}`;
  const advice = configurationAdvice(reason, token, { issuer, preset: PRESETS[preset], set });
  return advice ?? REASON_ADVICE[reason].operator;
}

/** Whether the API accepts a token, with the claims that it reads. */
export async function tokenFinding(gate: Gate, token: string, settings: Settings): Promise<Finding> {
  const explanation = await explain(token, { gate });
  const { auth, checks } = explanation;
  if (!auth) {
    const { reason, detail } = checks.find(({ outcome }) => outcome === 'failed') ?? {};
    return failed('token', `${reason}: ${detail}`, adviceFor(explanation, token, settings) ?? '');
  }
  const preset = PRESETS[settings.preset];
  const { clientIdClaims, scopeClaims, generationClaim } = preset;
  const present = (names: readonly string[]): string =>
    names.find((name) => Object.hasOwn(auth.claims, name)) ?? 'none';
  const generation =
    auth.generation === undefined
      ? 'not checked'
      : `${auth.generation} (${settings.generationClaim || generationClaim})`;
  const advice = auth.scopes.length === 0 ? scopeAdvice(auth.claims, preset) : undefined;
  return passed(
    'token',
    `accepted: client ${auth.clientId} (${present(clientIdClaims)}), scopes ${auth.scopes.join(' ') || 'none'} (${present(scopeClaims)}), generation ${generation}${advice ? `; ${advice}` : ''}`,
  );
}
