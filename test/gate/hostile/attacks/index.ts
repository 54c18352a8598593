import { ALGORITHM_ATTACKS } from './algorithms';
import { AUTHORIZATION_ATTACKS } from './authorization-header';
import { CLAIM_ATTACKS } from './claims';
import { ENCODING_ATTACKS } from './encoding';
import { FRAMING_ATTACKS } from './framing';
import { HEADER_ATTACKS } from './header-members';
import { KEY_ATTACKS } from './keys-in-the-token';
import { LOG_ATTACKS } from './log-injection';
import { LOOKALIKE_ATTACKS } from './lookalikes';
import { PATH_ATTACKS } from './paths-and-methods';
import { SIGNATURE_ATTACKS } from './signatures';
import { ELSEWHERE_ATTACKS } from './token-elsewhere';
import type { Attack } from '../support/attack';

/** Every attack, by category. */
export const CATEGORIES: Readonly<Record<string, readonly Attack[]>> = {
  'algorithm confusion': ALGORITHM_ATTACKS,
  'keys that tokens bring along': KEY_ATTACKS,
  'members of the header': HEADER_ATTACKS,
  encoding: ENCODING_ATTACKS,
  signatures: SIGNATURE_ATTACKS,
  claims: CLAIM_ATTACKS,
  'issuers and audiences that look alike': LOOKALIKE_ATTACKS,
  'the Authorization header': AUTHORIZATION_ATTACKS,
  'tokens elsewhere': ELSEWHERE_ATTACKS,
  'paths and methods': PATH_ATTACKS,
  'framing of requests': FRAMING_ATTACKS,
  'what reaches the log': LOG_ATTACKS,
};
