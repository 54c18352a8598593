import { describe } from '../core/options';
import { isGeneration } from './generation';

/**
 * Checks what is to be published.
 *
 * @throws TypeError when it is no floor.
 */
export function requireFloor(clientId: unknown, generation: unknown): void {
  if (typeof clientId !== 'string' || clientId === '') {
    throw new TypeError(`publish(): client id must be a non-empty string, got ${describe(clientId)}`);
  }
  if (!isGeneration(generation)) {
    throw new TypeError(`publish(): generation must be an integer from 0 to 2^53 - 1, got ${describe(generation)}`);
  }
}
