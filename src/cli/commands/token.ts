import { readSettings } from '../../index';
import { print } from '../answer';
import type { CommandContext, CommandOptions } from '../command';
import { EXIT } from '../exit';
import { obtainToken } from '../obtain-token';

/** `tillgate token <client>`: the token alone on stdout, so that `$(tillgate token pos-terminal)` works. */
export async function token(context: CommandContext, options: CommandOptions, clientId: string): Promise<number> {
  const answer = await obtainToken(context.io, readSettings(context.io.env), clientId, options);
  print(context, answer, answer.access_token);
  return EXIT.ok;
}
