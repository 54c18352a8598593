import type { Fetch } from '../../../../src/gate/net/http';
import { keyFetcher } from '../../../../src/gate/token/keys/fetch-keys';
import type { FetchedKeys } from '../../../../src/gate/token/keys/fetch-keys';
import type { VerificationKey } from '../../../../src/gate/token/keys/key-set';
import { PRESETS } from '../../../../src/gate/token/presets';
import { gateApp } from '../../../support/gate-app';
import { fakeTime, settle } from '../../../support/fake-time';
import { ISSUER, NOW_MS, token } from '../../../support/issuer';
import { jwks, newKey, testKey } from '../../../support/keys';
import { recordingLogger } from '../../../support/log';
import type { RecordingLogger } from '../../../support/log';
import { breakPackage } from '../../../support/modules';
import { expectRefusal } from '../../../support/refusals';

const KEY = testKey();
const OIDC = `${ISSUER}/.well-known/openid-configuration`;

/** Responses of an injected fetch that ignores the signal. */
function deafFetch() {
  const waiting = new Map<string, (response: Response) => void>();
  const fetch: Fetch = (url) => new Promise((resolve) => waiting.set(url, resolve));
  return {
    fetch,
    waiting,
    respond: (url: string, document: object): Promise<void> => {
      waiting.get(url)?.(Response.json(document));
      waiting.delete(url);
      return settle();
    },
  };
}

it('drops a response that comes after the time is over, from a fetch that cannot be cut too', async () => {
  const { fetch, waiting, respond } = deafFetch();
  const time = fakeTime(NOW_MS);
  const jwksUri = `${ISSUER}/jwks`;
  const through = gateApp({ jwksUri, fetch, clock: time.clock, schedule: time.schedule });
  const refused = through.get(token({ key: KEY })).then((response) => response);
  while (through.presented.length === 0) await settle();
  const late = waiting.get(jwksUri);
  await time.advance(5_000);
  expectRefusal(await refused, 'keys_unavailable', through);
  late?.(Response.json(jwks(KEY)));
  await settle();
  expect(through.gate.status().issuers[0]?.keys).toMatchObject({ state: 'starting', keys: 0 });

  await time.advance(1_000);
  await respond(jwksUri, jwks(KEY));
  await through.gate.ready();
  await through.get(token({ key: KEY })).expect(200);
  await through.gate.close();
});

it('gives metadata and key set 5 s together, so that no request waits longer for one fetch', async () => {
  const { fetch, respond } = deafFetch();
  const time = fakeTime(NOW_MS);
  const through = gateApp({ fetch, clock: time.clock, schedule: time.schedule });
  await settle();
  await time.advance(3_000);
  await respond(OIDC, { issuer: ISSUER, jwks_uri: `${ISSUER}/jwks` });
  await time.advance(1_999);
  expect(through.log.entries).toEqual([]);
  await time.advance(1);
  expect(through.log.at('warn')).toMatchObject([
    { fields: { detail: `${ISSUER}/jwks did not respond within 5000 ms` } },
  ]);
  await through.gate.close();
});

describe('a key set', () => {
  /** Makes a fetcher that gets these key sets, one after the other. */
  function fetcherOf(...responses: readonly (readonly unknown[])[]): {
    fetchKeys: () => Promise<FetchedKeys>;
    log: RecordingLogger;
  } {
    const log = recordingLogger();
    const left = [...responses];
    const jwksUri = `${ISSUER}/jwks?key=secret`;
    const settings = { issuer: ISSUER, authUrl: ISSUER, jwksUri, checkUrl() {}, preset: PRESETS.rfc9068 };
    const fetch = () => Promise.resolve(Response.json({ keys: left.shift() }));
    const { fetch: fetchKeys } = keyFetcher(settings, { fetch, logger: log });
    return { fetchKeys: () => fetchKeys(new AbortController().signal), log };
  }
  const fetched = async (...keys: readonly unknown[]): Promise<FetchedKeys['keys']> =>
    (await fetcherOf(keys).fetchKeys()).keys;
  const offCurve = { ...KEY.jwk, kid: 'off its curve', x: KEY.jwk['y'] };
  const short = newKey('RS256', 'short', { modulusLength: 1024 }).jwk;
  const UNUSABLE = [offCurve, short, { ...KEY.jwk, kid: 'private', d: 'AAAA' }, { kid: {} }, null];

  // In Jest as its users have it: nothing in node_modules is transformed, so jwks-rsa and jose must be CommonJS.
  it.each(['RS256', 'PS256', 'ES384', 'EdDSA', 'Ed25519'])(
    'gives its keys for %s, and leaves the unusable ones out',
    async (alg) => {
      const key = testKey(alg);
      const found = await fetched(...UNUSABLE, key.jwk);
      const algorithms = alg.startsWith('Ed') ? ['EdDSA', 'Ed25519'] : [alg];
      expect(found).toMatchObject([{ keyId: key.kid, algorithms }]);
      expect(found[0]?.key.export({ format: 'jwk' })).toMatchObject({ kty: key.jwk['kty'] });
    },
  );

  it('is logged with what is left out, each key once', async () => {
    const keys = [
      ...UNUSABLE,
      KEY.jwk,
      { kty: 'OKP', crv: 'X25519', kid: 'x25519', x: 'A'.repeat(43) },
      { kty: 'EC', crv: 'P-999', kid: 'curve', x: 'AA', y: 'AA' },
      { kty: 'AKP', alg: 'ML-DSA-44', kid: 'later', pub: 'AA' },
      // A key for encryption is no mistake of the issuer.
      { ...KEY.jwk, kid: 'enc', use: 'enc' },
    ];
    const { fetchKeys, log } = fetcherOf(keys, keys);
    await fetchKeys();
    await fetchKeys();
    expect(log.at('warn').map(({ message }) => message)).toEqual(Array(8).fill('a key of the key set is ignored'));
    expect(log.at('warn').map(({ fields }) => [fields['kid'], fields['why']])).toEqual([
      ['private', 'it is a private key'],
      ['a kid of type object', 'its kty must be RSA, EC or OKP'],
      ['a kid of type undefined', 'it is not an object'],
      ['later', 'its kty must be RSA, EC or OKP'],
      ...['off its curve', 'x25519', 'curve'].map((kid) => [kid, 'it cannot be parsed']),
      ['short', 'its modulus has less than 2048 bits'],
    ]);
  });

  it('says why keys are not used, by their ids', async () => {
    const { unusable } = await fetcherOf([...UNUSABLE, KEY.jwk]).fetchKeys();
    expect([...unusable].sort()).toEqual([
      ['off its curve', 'it cannot be parsed'],
      ['private', 'it is a private key'],
      ['short', 'its modulus has less than 2048 bits'],
    ]);
    await expect(fetched(short)).rejects.toMatchObject({
      unusable: new Map([['short', 'its modulus has less than 2048 bits']]),
    });
  });

  it('is logged with a hundred warnings at most', async () => {
    const many = Array.from({ length: 150 }, (_, index) => ({ kty: 'oct', kid: `oct-${index}` }));
    const { fetchKeys, log } = fetcherOf([...many, KEY.jwk]);
    await fetchKeys();
    expect(log.at('warn')).toHaveLength(100);
  });

  it('keeps the objects of keys that stay, by kid, alg and material', async () => {
    const { fetchKeys } = fetcherOf(
      [KEY.jwk],
      [KEY.jwk],
      [{ ...KEY.jwk, kid: 'renamed' }],
      [newKey('ES256', KEY.kid).jwk],
    );
    const [first] = (await fetchKeys()).keys;
    expect((await fetchKeys()).keys[0]).toBe(first);
    expect((await fetchKeys()).keys[0]).not.toBe(first);
    expect((await fetchKeys()).keys[0]).not.toBe(first);
  });

  it('gives another key where its alg was narrowed, widened or changed', async () => {
    const { alg: _alg, ...bare } = testKey('RS256').jwk;
    const named = (alg: string): object => ({ ...bare, alg });
    const { fetchKeys } = fetcherOf([bare], [named('PS256')], [named('RS256')], [bare]);
    const found: VerificationKey[] = [];
    for (let times = 0; times < 4; times++) found.push(...(await fetchKeys()).keys);
    const any = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
    expect(found.map(({ algorithms }) => algorithms)).toEqual([any, ['PS256'], ['RS256'], any]);
    expect(new Set(found).size).toBe(4);
  });

  it.each([
    ['only unparseable keys', offCurve],
    ['only unusable keys', { kty: 'oct', kid: 'oct', k: 'AA' }],
    ['only weak keys', short],
  ])('with %s fails, and the message shows no query', async (_what, jwk) => {
    const message = `${ISSUER}/jwks has no key that can verify access tokens`;
    await expect(fetched(jwk)).rejects.toMatchObject({ name: 'FetchError', message });
  });

  it('that cannot be parsed keeps what the library says, for operators', async () => {
    await expect(fetched(offCurve)).rejects.toMatchObject({ cause: expect.objectContaining({ name: 'JwksError' }) });
  });

  it.each([[[]], ['all'], [undefined], [{ 0: KEY.jwk, length: 1 }]])('that is %j is not one', async (keys) => {
    const fetchKeys = fetcherOf(keys as readonly unknown[]).fetchKeys();
    await expect(fetchKeys).rejects.toThrow(`${ISSUER}/jwks is not a key set with keys in it`);
  });

  it('shows no more than 80 characters of a kid in the log', async () => {
    const { fetchKeys, log } = fetcherOf([{ kty: 'oct', kid: 'k'.repeat(1_000) }, KEY.jwk]);
    await fetchKeys();
    expect(log.at('warn').map(({ fields }) => fields['kid'])).toEqual(['k'.repeat(80)]);
  });

  it('of 200 keys is accepted', async () => {
    expect(await fetched(...Array<object>(199).fill({ kty: 'oct' }), KEY.jwk)).toHaveLength(1);
  });

  it('of more keys than that is not: importing them would block the process', async () => {
    await expect(fetched(...Array<object>(201).fill(KEY.jwk))).rejects.toThrow(`${ISSUER}/jwks has more than 200 keys`);
  });
});

describe('jwks-rsa', () => {
  let mend = (): void => undefined;
  afterEach(() => mend());

  it.each<[string, Error, string]>([
    ['is missing', Object.assign(new Error('/home/secret'), { code: 'MODULE_NOT_FOUND' }), 'Error (MODULE_NOT_FOUND)'],
    ['is broken', new SyntaxError('a secret'), 'SyntaxError'],
  ])('that %s is named in the log, by the kind and code of its error', async (_what, failure, label) => {
    mend = breakPackage('jwks-rsa', failure);
    const time = fakeTime(NOW_MS);
    const fetch: Fetch = () => Promise.resolve(Response.json(jwks(KEY)));
    const through = gateApp({ jwksUri: `${ISSUER}/jwks`, fetch, clock: time.clock, schedule: time.schedule });
    expectRefusal(await through.get(token({ key: KEY })), 'keys_unavailable', through);
    const detail = `jwks-rsa could not be loaded: ${label}`;
    expect(through.log.at('warn')[0]).toMatchObject({ fields: { detail }, message: 'the key set cannot be fetched' });
    expect(JSON.stringify(through.log.entries)).not.toContain('secret');
    await through.gate.close();
  });
});
