import { escapeUnsafe } from '../../core/logger';
import { explain } from '../../index';
import type { Explanation } from '../../index';
import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import { parseToken } from '../../token/jws';
import type { CommandContext, CommandOptions } from '../command';
import { EXIT, print, table } from '../command';
import { openGate } from '../gate';
import { apiSettings } from '../settings';
import { adviceFor } from './check-token';

/** `tillgate explain <token>`: every check in order, and the first that fails. */
export async function explainToken(context: CommandContext, options: CommandOptions, given: string): Promise<number> {
  const { io } = context;
  const token = given === '-' ? (await io.readStdin()).trim() : given;
  const settings = apiSettings(readSettings(io.env));
  const { gate, close } = openGate(io, settings);
  try {
    const scopes = options.scope?.split(' ').filter((scope) => scope !== '');
    const explanation = await explain(token, { gate, scopes });
    const result = { ...explanation, ...details(explanation, token, scopes, settings) };
    print(context, result, asText(result));
    return explanation.accepted ? EXIT.ok : EXIT.failed;
  } finally {
    await close();
  }
}

/** What the checks alone do not say: what to change, the claims, and the scopes that are missing. */
interface Details {
  readonly fix?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly missingScopes?: readonly string[];
}

function details(
  explanation: Explanation,
  token: string,
  scopes: readonly string[] | undefined,
  settings: Settings,
): Details {
  const { auth } = explanation;
  const fix = adviceFor(explanation, token, settings);
  const claims = auth?.claims ?? unverifiedClaims(token);
  const missingScopes = auth && scopes?.filter((scope) => !auth.scopes.includes(scope));
  return { ...(fix && { fix }), ...(claims && { claims }), ...(missingScopes?.length && { missingScopes }) };
}

function unverifiedClaims(token: string): Details['claims'] {
  try {
    return parseToken(token).claims;
  } catch {
    return undefined;
  }
}

function asText({ accepted, status, checks, auth, fix, claims, missingScopes }: Explanation & Details): string {
  const rows = checks.map(({ check, outcome, reason, detail }) => [
    check,
    outcome,
    reason ? `${reason}: ${detail}` : '',
  ]);
  const lines = [table(rows)];
  if (claims) lines.push(escapeUnsafe(`${auth ? 'claims' : 'claims, not verified'}: ${JSON.stringify(claims)}`));
  if (missingScopes) lines.push(escapeUnsafe(`missing scopes: ${missingScopes.join(' ')}`));
  if (fix) lines.push(escapeUnsafe(`what to do: ${fix}`));
  const scopes = auth?.scopes.join(' ');
  return [
    ...lines,
    accepted ? escapeUnsafe(`accepted: client ${auth?.clientId}, scopes ${scopes}`) : `refused with ${status}`,
  ].join('\n');
}
