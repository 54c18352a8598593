import { describe, option, readOptions, readStrings } from './options';

/** How a user must have authenticated, as apps write it. One of both at least. */
export interface RequiredAuthentication {
  /** Accepted authentication context classes, one of which is enough. */
  readonly acr?: string | readonly string[] | undefined;
  /** Longest time since `auth_time`. */
  readonly maxAgeSeconds?: number | undefined;
}

/** How the user has to authenticate for a request (RFC 9470 section 3). */
export interface StepUp {
  /** Authentication context classes, of which one is enough. */
  readonly acrValues?: readonly string[] | undefined;
  /** Longest time since the authentication, in seconds. */
  readonly maxAgeSeconds?: number | undefined;
}

const STEP_UP_OPTIONS = {
  // A challenge separates them by blanks (RFC 9470 section 3).
  acr: option('a class without blanks, or an array of them', (given) => {
    const classes = readStrings(given);
    return classes?.every((one) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(one)) ? classes : undefined;
  }),
  maxAgeSeconds: option.number({ unit: 'seconds', min: 0, integer: true }),
};

/**
 * Reads what a route requires of the authentication of a user.
 *
 * @param parent - the option of `factory` whose value this is
 * @throws TypeError when a member is wrong, or both are missing
 */
export function readStepUp(factory: string, given: unknown, parent = ''): StepUp {
  const { acr: acrValues, maxAgeSeconds } = readOptions(factory, given, STEP_UP_OPTIONS, { parent });
  if (acrValues === undefined && maxAgeSeconds === undefined) {
    const at = parent === '' ? '' : `option "${parent}": `;
    throw new TypeError(`${factory}(): ${at}expected "acr", "maxAgeSeconds", or both`);
  }
  return Object.freeze({ acrValues, maxAgeSeconds });
}

/** The clock of the issuer may be ahead. */
const CLOCK_TOLERANCE_SECONDS = 60;

/** What in the claims is not enough, for operators; `undefined` when all is. */
export function describeWeakness(
  claims: Readonly<Record<string, unknown>>,
  required: StepUp,
  nowMs: number,
): string | undefined {
  const { acr, auth_time: authTime } = claims;
  const { acrValues, maxAgeSeconds } = required;
  if (acrValues && !acrValues.some((accepted) => accepted === acr)) return `acr is ${describe(acr)}`;
  if (maxAgeSeconds === undefined) return undefined;
  // A time in the future says nothing about when the user has authenticated.
  const ageSeconds = typeof authTime === 'number' ? nowMs / 1000 - authTime : NaN;
  const isRecent = ageSeconds >= -CLOCK_TOLERANCE_SECONDS && ageSeconds <= maxAgeSeconds;
  return isRecent ? undefined : `auth_time is ${describe(authTime)}`;
}
