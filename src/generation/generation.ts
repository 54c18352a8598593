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
