import type { JsonWebKey } from 'node:crypto';
import type { CaseClass } from '../../../../src/testing';
import { decode, HANDLERS, isSigned, keyOf, NOT_FOUND, scopesOf, verifyRight, wrongIn } from './parcels';
import type { Call, Claims, Mistake, Parts, Reply, Server } from './parcels';

/** Everything is allowed to it. */
export const ANYBODY: Claims = { client_id: 'anybody', scope: 'parcels.read parcels.write rates' };
export const partsOf = (token: string): readonly [Claims, Claims] =>
  [0, 1].map((at) => decode(token.split('.')[at]) ?? {}) as [Claims, Claims];
export const attempt = <Result>(make: () => Result): Result | undefined => {
  try {
    return make();
  } catch {
    return undefined;
  }
};
export const isGood = (token: string | undefined): boolean =>
  token !== undefined && scopesOf(attempt(() => partsOf(token)[1]) ?? {}).includes('parcels.read');
export const skip = (isOpen: Parts['isOpen']): Mistake => ({ isOpen });
/** A gate by hand that also takes what `takes` says. */
export const takes = (isTaken: (token: string, head: Claims, claims: Claims, call: Call) => boolean): Mistake => ({
  verify(token, issuer, call) {
    const [head, claims] = attempt(() => partsOf(token)) ?? [{}, {}];
    return verifyRight(token, issuer) ?? (isTaken(token, head, claims, call) ? claims : undefined);
  },
});
/** A gate by hand that compares the claims in its own way, after the signature. */
export const judges = (isRight: (claims: Claims, issuer: Parameters<Parts['verify']>[1]) => boolean): Mistake => ({
  verify(token, issuer) {
    const [head, claims] = attempt(() => partsOf(token)) ?? [{}, {}];
    return isSigned(token, keyOf(issuer, head['kid'])) && isRight(claims, issuer) ? claims : undefined;
  },
});
export const allows = (
  isEnough: (scopes: readonly string[], need: string, claims: Claims, call: Call) => boolean,
): Mistake => ({
  allows: (claims, need, call) => isEnough(scopesOf(claims), need, claims, call),
});
export const handles = (
  name: string,
  change: (usual: Reply, ...rest: Parameters<Parts['handlers'][string]>) => Reply,
): Mistake => ({
  handlers: { [name]: (...rest) => change(HANDLERS[name]?.(...rest) ?? NOT_FOUND, ...rest) },
});
export const refuses =
  (change: (usual: Reply, ...rest: Parameters<Parts['refuse']>) => Reply): ((usual: Parts['refuse']) => Mistake) =>
  (usual) => ({ refuse: (...rest) => change(usual(...rest), ...rest) });
export async function keysAt(url: unknown): Promise<readonly JsonWebKey[]> {
  if (typeof url !== 'string') return [];
  return ((await (await fetch(url)).json()) as { keys: readonly JsonWebKey[] }).keys;
}
export const namesKeys = (isRead: (head: Claims) => unknown): Mistake => ({
  async verify(token, issuer) {
    const head = attempt(() => partsOf(token)[0]) ?? {};
    const keys = await keysAt(isRead(head)).catch(() => []);
    return keys.some((jwk) => isSigned(token, jwk)) ? partsOf(token)[1] : verifyRight(token, issuer);
  },
});
export const members = ({ body }: Reply): object => (typeof body === 'object' && body !== null ? body : {});
/** Changes whatever object is named, whoever owns it. */
export function changeAny({ path, body }: Call, { store }: Server): void {
  const found = store.parcels.get(path.split('/')[3] ?? '');
  if (found && wrongIn(body, true) === undefined) Object.assign(found, body);
}

/** A server that does what was asked, and refuses. */
export const writes = (method: string, write: (call: Call, server: Server) => unknown): Planted =>
  refuses((usual, _status, _scope, call, server) => {
    if (call.method === method) write(call, server);
    return usual;
  });

/** A mistake, or one that needs to know how the server refuses usually. */
export type Planted = Mistake | ((refuse: Parts['refuse']) => Mistake);

export type Table = Readonly<Record<string, readonly [found: CaseClass, plant: () => Planted]>>;

/** One row of a table. */
export const found = (what: CaseClass, plant: () => Planted): Table[string] => [what, plant];
