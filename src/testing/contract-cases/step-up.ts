import { readStepUp } from '../../core/step-up';
import type { StepUp } from '../../core/step-up';
import { nameOf } from '../../openapi/document';
import type { LocatedOperation } from '../../openapi/document';
import { readClaims } from './credentials';
import type { TokenSource } from './credentials';
import type { ExpectedRefusal } from './responses';

/** RFC 9470 section 3. */
export const STEP_UP_REQUIRED: ExpectedRefusal = {
  status: 401,
  error: 'insufficient_user_authentication',
  codes: ['step_up_required'],
};

/** More than gates tolerate for clocks that differ, in seconds. */
const LATE_SECONDS = 120;

/** What the document says in `x-authentication` of an operation. */
export function documentedStepUp(operation: LocatedOperation): StepUp | undefined {
  const { 'x-authentication': required } = operation.operation;
  if (required === undefined) return undefined;
  return readStepUp('contractCases', required, `x-authentication of ${nameOf(operation)}`);
}

/** An issuer whose tokens are by default of a user who has authenticated as required, when the token was issued. */
export function issuerOfAuthenticated(issuer: TokenSource, stepUp: StepUp | undefined): TokenSource {
  if (!stepUp) return issuer;
  const acr = stepUp.acrValues?.[0];
  return {
    token: (given = {}) => issuer.token({ ...given, claims: { acr, auth_time: nowOf(issuer), ...given.claims } }),
  };
}

/** Users who have not authenticated as required, by the claims of their tokens. */
export function weakClaims(
  { acrValues: [acr] = [], maxAgeSeconds }: StepUp,
  issuer: TokenSource,
): readonly (readonly [user: string, claims: () => Readonly<Record<string, unknown>>])[] {
  const silent = 'a token that does not say how its user authenticated';
  const late = `a token of a user who authenticated more than ${maxAgeSeconds} s ago`;
  return [
    [silent, () => ({ acr: undefined, auth_time: undefined })],
    ...(acr === undefined ? [] : [[`a token with the acr ${acr}x`, () => ({ acr: `${acr}x` })] as const]),
    ...(maxAgeSeconds === undefined
      ? []
      : [[late, () => ({ auth_time: nowOf(issuer) - maxAgeSeconds - LATE_SECONDS })] as const]),
  ];
}

/** The time of an issuer, in seconds: its clock need not be that of this process. */
function nowOf(issuer: TokenSource): number {
  return readClaims(issuer.token()).iat;
}
