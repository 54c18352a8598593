import { escapeUnsafe } from '../../core/logger';
import { explain } from '../../index';
import type { Explanation } from '../../index';
import { readSettings } from '../../settings/settings';
import type { CommandContext, CommandOptions } from '../command';
import { EXIT, print, table } from '../command';
import { openGate } from '../gate';
import { apiSettings } from '../settings';

/** `tillgate explain <token>`: every check in order, and the first that fails. */
export async function explainToken(context: CommandContext, options: CommandOptions, given: string): Promise<number> {
  const { io } = context;
  const token = given === '-' ? (await io.readStdin()).trim() : given;
  const { gate, close } = openGate(io, apiSettings(readSettings(io.env)));
  try {
    const scopes = options.scope?.split(' ').filter((scope) => scope !== '');
    const explanation = await explain(token, { gate, scopes });
    print(context, explanation, asText(explanation));
    return explanation.accepted ? EXIT.ok : EXIT.failed;
  } finally {
    await close();
  }
}

function asText({ accepted, status, checks, auth }: Explanation): string {
  const rows = checks.map(({ check, outcome, reason, detail }) => [
    check,
    outcome,
    reason ? `${reason}: ${detail}` : '',
  ]);
  const verdict = accepted
    ? escapeUnsafe(`accepted: client ${auth?.clientId}, scopes ${auth?.scopes.join(' ')}`)
    : `refused with ${status}`;
  return `${table(rows)}\n${verdict}`;
}
