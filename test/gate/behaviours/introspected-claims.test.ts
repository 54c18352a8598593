import { explain } from '../../../src/gate';
import { active, introspectingGate } from '../../support/introspection';
import { NOW, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';

const OPAQUE = 'an-opaque-token';
const scopes = ['orders:read'];

describe('introspection responses', () => {
  it('need no iat where the generation is not checked: then exp lies at most a token age ahead', async () => {
    const through = introspectingGate({ generationClaim: false, maxTokenAgeSeconds: 3_600 });
    for (const [exp, reason] of [
      [NOW + 3_600, undefined],
      [NOW + 3_601, 'lifetime_too_long'],
      [NOW - 10, 'expired'],
    ] as const) {
      through.reached.length = 0;
      through.endpoint.tokens.set(`opaque-${exp}`, active({ iat: undefined, exp }));
      const response = await through.get(`opaque-${exp}`);
      if (reason) expectRefusal(response, reason, through);
      else expect(response.status).toBe(200);
    }
    through.reached.length = 0;
    expectRefusal(await through.get(token({ claims: { iat: undefined } })), 'invalid_claims', through);
  });

  it('need no aud with audience: false and clientIds, where the issuer has no JWTs', async () => {
    const keySet = { keys: [] as object[] };
    const options = { audience: false, clientIds: ['pos-17'], keys: keySet } as const;
    const through = introspectingGate(options);
    through.endpoint.tokens.set('without', active({ aud: undefined }));
    through.endpoint.tokens.set('another', active({ aud: undefined, client_id: 'kiosk' }));
    await through.get('without').expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get('another'), 'wrong_audience', through);
    expectRefusal(await through.get(token()), 'unknown_key', through);
    expect(through.log.at('info').at(-1)?.fields).toMatchObject({
      detail: 'the token is a JWT, and only opaque tokens are accepted (keys: [], TILLGATE_KEYS=none)',
    });
    keySet.keys = [testKey().jwk];
    expectRefusal(await through.get(token()), 'wrong_audience', through);
    for (const lacking of [{ clientIds: undefined }, { keys: jwks(testKey()) }, { opaque: undefined }]) {
      expect(() => introspectingGate({ ...options, keys: [], ...lacking })).toThrow(
        /must be the aud of your API|at least one key/,
      );
    }
  });

  it('can have the stamped number in ext, as those of Hydra', async () => {
    const through = introspectingGate({ preset: 'hydra', generationClaim: 'ext.generation' });
    const hydra = (ext: object): object => active({ generation: undefined, ext });
    through.endpoint.tokens.set('newer', hydra({ generation: 1_790_000_000_002 }));
    through.endpoint.tokens.set('older', hydra({ generation: 1_790_000_000_001 }));
    through.endpoint.tokens.set('without', hydra({}));
    const { body } = await through.get('newer').expect(200);
    expect(body.auth.generation).toBe(1_790_000_000_002);
    through.reached.length = 0;
    expectRefusal(await through.get('older'), 'superseded', through);
    expectRefusal(await through.get('without'), 'generation_missing', through);
  });
});

it.each<[string, Readonly<Record<string, unknown>>, string]>([
  ['an object', { scope: { a: 1 } }, 'claim scope is an object, expected'],
  ['a number', { scope: 7 }, 'claim scope is a number, expected'],
  ['null', { scope: null }, 'claim scope is null, expected'],
  ['objects in an array', { scope: ['a', {}] }, 'claim scope is an array with an object, expected'],
  ['absent, and another claim has names', { scope: undefined, roles: ['till'] }, 'the token also has names in "roles"'],
])('a scope claim that is %s grants nothing, and the log and explain() say so', async (_what, claims, hint) => {
  const through = introspectingGate();
  through.endpoint.tokens.set(OPAQUE, active(claims));
  for (const raw of [token({ claims }), OPAQUE]) {
    through.reached.length = 0;
    expectRefusal(await through.get(raw), 'insufficient_scope', through, { scopes });
    const detail = expect.stringContaining(`needs orders:read, has none; ${hint}`) as string;
    expect(through.log.at('info').at(-1)?.fields).toMatchObject({ reason: 'insufficient_scope', detail });
    const { checks } = await explain(raw, { gate: through.gate, scopes });
    expect(checks.find(({ outcome }) => outcome === 'failed')).toMatchObject({ check: 'scope', detail });
  }
});
