import { keyFetcher } from '../../../src/token/keys/fetch-keys';
import type { Fetch } from '../../../src/token/keys/fetch-json';
import { gateApp } from '../../support/gate-app';
import { fakeTime, settle } from '../../support/fake-time';
import { ISSUER, NOW_MS, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';
import { expectRefusal } from '../../support/refusals';

const KEY = testKey();
const OIDC = `${ISSUER}/.well-known/openid-configuration`;

/** Answers of an injected fetch that pays no heed to the signal. */
function deafFetch() {
  const waiting = new Map<string, (response: Response) => void>();
  const fetch: Fetch = (url) => new Promise((resolve) => waiting.set(url, resolve));
  return {
    fetch,
    waiting,
    answer: (url: string, document: object): Promise<void> => {
      waiting.get(url)?.(Response.json(document));
      waiting.delete(url);
      return settle();
    },
  };
}

it('drops an answer that comes after the time is over, from a fetch that cannot be cut too', async () => {
  const { fetch, waiting, answer } = deafFetch();
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
  await answer(jwksUri, jwks(KEY));
  await through.gate.ready();
  await through.get(token({ key: KEY })).expect(200);
  await through.gate.close();
});

it('gives metadata and key set 5 s together, so that no request waits longer for one fetch', async () => {
  const { fetch, answer } = deafFetch();
  const time = fakeTime(NOW_MS);
  const through = gateApp({ fetch, clock: time.clock, schedule: time.schedule });
  await settle();
  await time.advance(3_000);
  await answer(OIDC, { issuer: ISSUER, jwks_uri: `${ISSUER}/jwks` });
  await time.advance(1_999);
  expect(through.log.entries).toEqual([]);
  await time.advance(1);
  expect(through.log.at('warn')).toMatchObject([
    { fields: { detail: `${ISSUER}/jwks did not answer within 5000 ms` } },
  ]);
  await through.gate.close();
});

describe('a key set', () => {
  const fetched = (document: object): Promise<readonly unknown[]> =>
    keyFetcher({
      issuer: ISSUER,
      authUrl: ISSUER,
      jwksUri: `${ISSUER}/jwks`,
      checkUrl() {},
      fetch: () => Promise.resolve(Response.json(document)),
      maxBytes: 1_048_576,
      logger: recordingLogger(),
    })(new AbortController().signal);

  it('of 200 keys is taken', async () => {
    expect(await fetched({ keys: [...Array<object>(199).fill({ kty: 'oct' }), KEY.jwk] })).toHaveLength(1);
  });

  it('of more keys than that is not: to import them would stop everything else', async () => {
    await expect(fetched({ keys: Array<object>(201).fill(KEY.jwk) })).rejects.toThrow(
      `${ISSUER}/jwks has more than 200 keys`,
    );
  });
});
