import { generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { privateKeyOf } from '../../auth-server/storage/keys';
import { readState } from '../../auth-server/storage/state-file';
import { ConfigurationError } from '../../core/configuration-error';
import type { Reason } from '../../index';
import type { Settings } from '../../settings/settings';
import { parseToken } from '../../token/jws';
import type { CommandOptions } from '../command';
import { CliError, EXIT } from '../command';

/** The flaws that a token can be given, and the reason with which a gate then refuses it. */
const FLAWS = {
  expired: 'expired',
  superseded: 'superseded',
  audience: 'wrong_audience',
  foreignKey: 'bad_signature',
  alg: 'algorithm_not_allowed',
} as const satisfies { readonly [Name in keyof CommandOptions]?: Reason };

type Flaw = keyof typeof FLAWS;

/** A token that every gate refuses. */
export interface BadToken {
  readonly access_token: string;
  readonly refused_as: Reason;
}

/** Makes a bad token from a good one. */
export type Spoil = (good: string) => Promise<BadToken>;

/**
 * Reads which flaw the options ask for; `undefined` where they ask for none.
 *
 * @throws CliError when they ask for several, or for one that does not exist
 * @throws ConfigurationError in production
 */
export function spoilerOf(options: CommandOptions, settings: Settings): Spoil | undefined {
  const flaws = (Object.keys(FLAWS) as Flaw[]).filter((name) => options[name] !== undefined);
  const [flaw] = flaws;
  if (flaw === undefined) return undefined;
  if (flaws.length > 1) {
    throw new CliError('give one of --expired, --superseded, --audience, --foreign-key and --alg', EXIT.usage);
  }
  if (options.alg !== undefined && options.alg !== 'none') {
    throw new CliError(`expected --alg none, got ${JSON.stringify(options.alg)}`, EXIT.usage);
  }
  if (settings.production)
    throw new ConfigurationError(['NODE_ENV: got "production", where no bad tokens are made; unset it']);
  return async (good) => ({ access_token: await spoiled(good, flaw, options, settings), refused_as: FLAWS[flaw] });
}

/**
 * The good token shows what the client may get; the bad one never says more, and no gate accepts it. What is signed
 * again is signed with the key of the local data directory only.
 */
async function spoiled(good: string, flaw: Flaw, options: CommandOptions, settings: Settings): Promise<string> {
  const { header, claims } = readGood(good);
  // With a signature: without one the token would be malformed, which is another refusal.
  if (flaw === 'alg') return good.replace(/^[^.]*/, encode({ ...header, alg: 'none' }));
  if (flaw === 'foreignKey') return signed(header, claims, foreignKey(header['alg']));
  const key = await ownKey(header['kid'], settings);
  if (flaw === 'superseded') return signed(header, { ...claims, generation: Number(claims['generation']) - 1 }, key);
  const expired = inThePast(claims);
  if (flaw === 'expired') return signed(header, expired, key);
  if (options.audience === claims['aud']) {
    throw new CliError(
      `--audience ${JSON.stringify(options.audience)} is that of good tokens; name another`,
      EXIT.usage,
    );
  }
  // Expired as well: an API of that audience may trust this token server.
  return signed(header, { ...expired, aud: options.audience }, key);
}

type Members = Readonly<Record<string, unknown>>;

function readGood(good: string): { readonly header: Members; readonly claims: Members } {
  try {
    return parseToken(good);
  } catch {
    throw new CliError('the access token of this server is not a JWT: no bad one can be made of it');
  }
}

const HOUR_SECONDS = 3_600;

function inThePast(claims: Members): Members {
  const exp = Math.floor(Date.now() / 1000) - HOUR_SECONDS;
  return { ...claims, iat: exp - HOUR_SECONDS, exp };
}

/** The key that has signed the good token, from the data directory of this machine. */
async function ownKey(kid: unknown, { dataDir, authUrl, issuer }: Settings): Promise<KeyObject> {
  const signing = (await readState(join(dataDir, 'state.json')))?.keys.signing;
  if (signing && signing.kid === kid) return privateKeyOf(signing);
  throw new CliError(
    `this flaw needs the signing key, and ${dataDir} does not have the one of ${authUrl ?? issuer ?? 'this token server'}: ` +
      'it works with the embedded token server and its TILLGATE_DATA_DIR only; --foreign-key and --alg none work anywhere',
    EXIT.usage,
  );
}

function foreignKey(alg: unknown): KeyObject {
  if (alg === 'RS256') return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  throw new CliError(`expected a token signed with RS256 or ES256, got ${JSON.stringify(alg)}`);
}

function signed(header: Members, claims: Members, key: KeyObject): string {
  const input = `${encode(header)}.${encode(claims)}`;
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

function encode(members: Members): string {
  return Buffer.from(JSON.stringify(members)).toString('base64url');
}
