import { describe } from '../core/options';
import type { Floor } from './source';

/** From here on (September 2001) a generation is a time in ms; a smaller number is somebody else's counter. */
export const FIRST_TIME_MS = 1e12;

/** Whether a value can be a generation: an integer that a double holds exactly, not negative. */
export function isGeneration(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Whether a value is a floor, `[clientId, generation]`. */
export function isFloor(value: unknown): value is Floor {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && isGeneration(value[1]);
}

/** UTF-8 cannot express a lone surrogate, so a store would keep another client id; PostgreSQL stores no zero character. */
const NOT_STORABLE = /\0|\p{Surrogate}/u;

/**
 * Checks what is to be published.
 *
 * @throws TypeError when it is not a floor.
 */
export function requireFloor(clientId: unknown, generation: unknown): void {
  if (typeof clientId !== 'string' || clientId === '') {
    throw new TypeError(`publish(): client id must be a non-empty string, got ${describe(clientId)}`);
  }
  if (NOT_STORABLE.test(clientId)) {
    throw new TypeError('publish(): client id must be Unicode text without lone surrogates and zero characters');
  }
  if (!isGeneration(generation)) {
    throw new TypeError(`publish(): generation must be an integer from 0 to 2^53 - 1, got ${describe(generation)}`);
  }
}
