import { FetchError } from '../../../src/token/keys/fetch-json';
import { keyFetcher } from '../../../src/token/keys/fetch-keys';
import type { Jwk } from '../../../src/token/keys/jwk';
import { ISSUER } from '../../support/issuer';
import { newKey, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

// As in an untouched Jest before Node 24.9, which cannot load jose.
jest.mock('jwks-rsa', () => {
  throw new Error('Must use import to load ES Module');
});

const log = recordingLogger();

/** Fetches a key set with these keys. */
function fetchKeys(...keys: readonly Jwk[]): ReturnType<ReturnType<typeof keyFetcher>> {
  const fetch = (): Promise<Response> => Promise.resolve(Response.json({ keys }));
  const at = { issuer: ISSUER, authUrl: ISSUER, jwksUri: `${ISSUER}/jwks`, checkUrl: () => undefined };
  return keyFetcher({ ...at, fetch, maxBytes: 100_000, logger: log })(new AbortController().signal);
}

describe('keyFetcher() where jwks-rsa cannot be loaded', () => {
  it.each(['RS256', 'ES384', 'EdDSA'])('reads keys for %s, and leaves the same ones out', async (alg) => {
    const key = testKey(alg);
    const off = { ...testKey().jwk, kid: 'off its curve', x: testKey().jwk['y'] };
    const short = newKey('RS256', 'short', { modulusLength: 1024 }).jwk;
    const found = await fetchKeys(off, short, { ...key.jwk, kid: 'private', d: 'AAAA' }, key.jwk);
    expect(found).toMatchObject([{ keyId: key.kid, algorithms: [alg] }]);
    expect(found[0]?.key.export({ format: 'jwk' })).toMatchObject({ kty: key.jwk['kty'] });
  });

  it('says why it leaves one out', () => {
    expect(log.at('warn').map(({ fields }) => fields)).toEqual(
      expect.arrayContaining([
        { issuer: ISSUER, kid: 'off its curve', why: 'it cannot be parsed' },
        { issuer: ISSUER, kid: 'short', why: 'its modulus has less than 2048 bits' },
        { issuer: ISSUER, kid: 'private', why: 'it is a private key' },
      ]),
    );
  });

  it('fails for a set without a key that can be used', async () => {
    const off = { ...testKey().jwk, x: testKey().jwk['y'] };
    const message = `${ISSUER}/jwks has no key that can verify access tokens`;
    await expect(fetchKeys(off)).rejects.toThrow(new FetchError(message));
  });
});
