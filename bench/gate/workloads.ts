import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Algorithm, Issuer } from './tokens';

/** One column of the table: what the callers send. */
export interface Column {
  readonly name: string;
  readonly algorithm: Algorithm;
  /** How many different tokens: of new ones more than any cache in the comparison holds, so that each is new again. */
  readonly tokens: number;
  /** With a new DPoP proof (RFC 9449) for each request, by ES256. */
  readonly dpop?: true;
}

const NEW = 80_000;

export const COLUMNS: readonly Column[] = [
  { name: 'one known token', algorithm: 'RS256', tokens: 1 },
  { name: '1,000 known tokens', algorithm: 'RS256', tokens: 1_000 },
  { name: 'new tokens', algorithm: 'RS256', tokens: NEW },
  { name: 'new tokens, ES256', algorithm: 'ES256', tokens: NEW },
  { name: 'new tokens, EdDSA', algorithm: 'EdDSA', tokens: NEW },
  { name: 'DPoP, one known token', algorithm: 'RS256', tokens: 1, dpop: true },
  { name: 'DPoP, new tokens', algorithm: 'RS256', tokens: NEW, dpop: true },
];

/** Writes the headers of a column's requests into a file, one request a line: Authorization, and the proof after a tab. */
export async function writeHeaders({ tokens: count, dpop }: Column, issuer: Issuer, folder: string): Promise<string> {
  const file = join(folder, 'headers.txt');
  const tokens = await issuer.tokens(count);
  const lines = dpop
    ? (await issuer.proofs(NEW, tokens)).map((proof, index) => `DPoP ${tokens[index % count]}\t${proof}`)
    : tokens.map((token) => `Bearer ${token}`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}
