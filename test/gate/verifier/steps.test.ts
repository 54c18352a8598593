import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AuthError } from '../../../src/gate/core/errors';
import { REASONS } from '../../../src/gate/core/reasons';
import { staticKeys, type KeySource } from '../../../src/gate/token/keys/key-set';
import { SignatureVerifier } from '../../../src/gate/token/signature';
import { openIssuer, type IssuerContext } from '../../../src/gate/verifier/issuer';
import { JwtVerifier } from '../../../src/gate/verifier/jwt-verifier';
import { readGateOptions } from '../../../src/gate/verifier/read-options';
import { isUnverified, STEPS } from '../../../src/gate/verifier/steps';
import { AUDIENCE, GENERATION, ISSUER, NOW, NOW_MS, token, type Members, type TokenParts } from '../../support/issuer';
import { jwks, newKey, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

const OTHER = 'https://other.test';

/** Its key is that of a tenant, which its tokens have to name. */
const keys = staticKeys(jwks(testKey()));
const ofTenant: KeySource = {
  ...keys,
  find: (header, checkToken) => ({ ...(keys.find(header, checkToken) as object), tenant: 'ours' }) as never,
};
/** The same keys from a source that has to fetch them first. */
const fetched: KeySource = { ...ofTenant, find: async (header, checkToken) => ofTenant.find(header, checkToken) };

/** What decides about the tokens of one issuer; its floors know a newer generation than 1. */
function contextWith(source: KeySource, issuer = ISSUER): IssuerContext {
  const options = { issuer, audience: AUDIENCE, keys: jwks(testKey()), clientIds: ['pos-17'] };
  const gate = readGateOptions({ ...options, clock: () => NOW_MS, logger: recordingLogger() });
  const [settings] = gate.issuers;
  const preset = { ...settings!.preset, tenantClaim: 'tid' };
  const context = openIssuer({ ...settings!, preset }, new SignatureVerifier(), gate);
  context.generations?.verify('pos-17', { generation: GENERATION });
  return { ...context, keys: source };
}

/** The AuthError that refuses a token; `undefined` for one that is accepted. */
async function refusalOf(raw: string, contexts: readonly IssuerContext[]): Promise<AuthError | undefined> {
  try {
    await new JwtVerifier(contexts, 0).verify(raw);
    return undefined;
  } catch (error) {
    return error as AuthError;
  }
}

type Refusal = { readonly reason: string; readonly privateDetail?: string };
type Fault = readonly [step: string, fault: TokenParts, refusal: Refusal | undefined];

/** For each step a token that it refuses. */
const FAULTS: readonly Fault[] = [
  ['structure', { rawHeader: '{' }, { reason: 'malformed_token' }],
  ['known issuer', { claims: { iss: 'https://third.test' } }, { reason: 'wrong_issuer' }],
  ['header', { header: { crit: ['x'] } }, { reason: 'unsupported_critical_header' }],
  ['kind', { claims: { at_hash: 'x' } }, { reason: 'wrong_type', privateDetail: 'an ID token (at_hash)' }],
  ['key', { header: { alg: 'ES384' } }, { reason: 'algorithm_not_allowed' }],
  ['signature', { key: newKey('ES256', testKey().kid) }, { reason: 'bad_signature' }],
  ['claim types', { claims: { sub: 17 } }, { reason: 'invalid_claims', privateDetail: 'sub is not a string' }],
  ['issuer', { claims: { iss: OTHER } }, { reason: 'wrong_issuer' }],
  ['audience', { claims: { aud: OTHER } }, { reason: 'wrong_audience' }],
  ['times', { claims: { exp: NOW - 60 } }, { reason: 'expired' }],
  ['lifetime', { claims: { iat: NOW - 90_000 } }, { reason: 'lifetime_too_long' }],
  ['confirmation', { claims: { cnf: { jkt: 'x' } } }, { reason: 'sender_constrained' }],
  [
    'tenant',
    { claims: { tid: 'theirs' } },
    { reason: 'invalid_claims', privateDetail: 'tid is "theirs", but its key is for tenant ours' },
  ],
  ['generation', { claims: { generation: GENERATION - 1 } }, { reason: 'superseded' }],
  ['scopes', { claims: { scope: 17 } }, undefined],
];

/** A token with several faults; the first ones count where two are of one member. */
function tokenWith(faults: readonly TokenParts[]): string {
  const merged = [...faults].reverse().reduce<TokenParts>(
    (all, { header, claims, ...others }) => ({
      ...all,
      ...others,
      header: { ...all.header, ...header },
      claims: { ...all.claims, ...claims },
    }),
    { claims: { tid: 'ours' } },
  );
  return token(merged);
}

describe('STEPS', () => {
  it('has a token for each step that it refuses', () => {
    const names = Object.values(STEPS).flatMap((steps) => Object.keys(steps));
    expect(FAULTS.map(([step]) => step)).toEqual(names);
  });

  it('is what SECURITY.md explains, in this order, with the reasons of each step', () => {
    const text = readFileSync(join(__dirname, '../../../SECURITY.md'), 'utf8');
    const [, table = ''] = /## The steps of a token\n([^]*?)\n## /.exec(text) ?? [];
    const rows = [...table.matchAll(/^\| ([a-z ]+?) +\|.*\| ([^|]*?) +\|$/gm)].slice(1);
    expect(rows.map(([, step]) => step)).toEqual(FAULTS.map(([step]) => step));
    for (const [index, [, , reasons = '']] of rows.entries()) {
      const named = [...reasons.matchAll(/`(\w+)`/g)].map(([, reason = '']) => reason);
      expect(named.filter((reason) => !Object.hasOwn(REASONS, reason))).toEqual([]);
      const { reason } = FAULTS[index]?.[2] ?? {};
      if (reason === undefined) expect(named).toEqual([]);
      else expect(named).toContain(reason);
    }
  });

  it.each(FAULTS)('lets %s decide about a token that the steps after it refuse too', async (step, _fault, refusal) => {
    const at = FAULTS.findIndex(([name]) => name === step);
    const raw = tokenWith(FAULTS.slice(at).map(([, fault]) => fault));
    for (const source of [ofTenant, fetched]) {
      const context = contextWith(source);
      // `iss` selects the issuer of a gate with several; the keys of a single one decide before its name does.
      const contexts = step === 'known issuer' ? [context, contextWith(source, OTHER)] : [context];
      const refused = await refusalOf(raw, contexts);
      if (refusal) expect(refused).toMatchObject(refusal);
      else expect(refused).toBeUndefined();
    }
  });

  it.each<[string, Members, string]>([
    ['type of a claim', { exp: 'soon' }, 'invalid_claims'],
    ['issuer', { iss: 'https://staging.test' }, 'wrong_issuer'],
    ['audience', { aud: 'https://staging.test' }, 'wrong_audience'],
    ['end', { exp: NOW - 60 }, 'expired'],
    ['beginning', { nbf: NOW + 60 }, 'not_yet_valid'],
    ['lifetime', { exp: NOW + 90_000 }, 'lifetime_too_long'],
    ['confirmation', { cnf: { jkt: 'x' } }, 'sender_constrained'],
  ])('checks the %s of a token before an unknown key, and after a known one', async (_what, changes, expected) => {
    const claims = { tid: 'ours', ...changes };
    const forged = { key: newKey('ES256', testKey().kid) };
    for (const source of [ofTenant, fetched]) {
      const contexts = [contextWith(source)];
      const known = await refusalOf(token({ claims }), contexts);
      expect(known).toMatchObject({ reason: expected });
      expect(isUnverified(known!)).toBe(false);
      expect(await refusalOf(token({ ...forged, claims }), contexts)).toMatchObject({ reason: 'bad_signature' });
      const unknown = await refusalOf(token({ key: testKey('ES256', 'other'), claims }), contexts);
      const details = [known?.privateDetail, 'its key is unknown, and was not asked for'];
      expect(unknown).toMatchObject({ reason: expected, privateDetail: details.filter(Boolean).join('; ') });
      expect(isUnverified(unknown!)).toBe(true);
    }
  });

  it('refuses a token with right claims and an unknown key for its key', async () => {
    const raw = token({ key: testKey('ES256', 'other'), claims: { tid: 'ours' } });
    expect(await refusalOf(raw, [contextWith(ofTenant)])).toMatchObject({ reason: 'unknown_key' });
  });

  it('rejects with an outage of the keys', async () => {
    const down: KeySource = { ...keys, find: () => Promise.reject(new AuthError('keys_unavailable')) };
    expect(await refusalOf(token(), [contextWith(down)])).toMatchObject({ reason: 'keys_unavailable' });
  });
});
