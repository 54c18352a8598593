import { httpGenerations } from '../generation/index';
import type { HttpGenerationsOptions } from '../generation/index';
import type { GenerationSource, Settings } from '../index';

/**
 * The source of the settings as an admin reads it. `undefined` where the address alone will do: no admin token, or
 * credentials of its own. Whoever asks for it closes it.
 */
export function authorizedGenerations(
  { generationSource: url, adminToken }: Settings,
  surroundings: Pick<HttpGenerationsOptions, 'fetch' | 'logger'>,
): GenerationSource | undefined {
  if (adminToken === undefined || !url?.startsWith('http') || url.includes('@')) return undefined;
  return httpGenerations({ url, headers: { authorization: `Bearer ${adminToken}` }, ...surroundings });
}
