import type { AuthError } from '../../../src/gate';
import { silentLogger } from '../../../src/gate/core/logger';
import type { Possession } from '../../../src/gate/possession';
import type { BoundRequest } from '../../../src/gate/possession/possession';
import { SignatureVerifier } from '../../../src/gate/token/signature';
import type { TokenRequest } from '../../../src/gate/token/bearer';
import { NOW_MS } from '../../support/issuer';

export type GateOfProofs = BoundRequest['gate'];

const GATE: GateOfProofs = {
  resource: undefined,
  clock: () => NOW_MS,
  clockToleranceMs: 10_000,
  signatures: new SignatureVerifier(),
  logger: silentLogger,
};

/** A request with a bound token, as a gate gives it to each kind of proof. */
export function boundRequest(
  request: TokenRequest,
  { token = 'x', bound }: { readonly token?: string; readonly bound: string },
  gate: Partial<GateOfProofs> = {},
): BoundRequest {
  return { request, token, bound, caller: { client: 'pos-17' }, isTrial: false, gate: { ...GATE, ...gate } };
}

/** Whether a kind of proof accepts a request; else the reason, and what operators are told. */
export async function outcomeOf(kind: Possession, request: BoundRequest): Promise<unknown> {
  try {
    await kind.verify(request);
    return 'accepted';
  } catch (error) {
    const { reason, privateDetail } = error as AuthError;
    return [reason, privateDetail];
  }
}
