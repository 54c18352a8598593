import { explain } from '../../../src/gate';
import type { PresetName } from '../../../src/gate';
import { memoryGenerations } from '../../../src/gate/generation';
import { PRESET_NAMES, PRESETS, presetOfUrl } from '../../../src/gate/token/presets';
import { boundToken, dpopApp, proof } from '../../support/dpop';
import { fakeTime } from '../../support/fake-time';
import { gateApp, remember, testGate } from '../../support/gate-app';
import type { GateAppOptions } from '../../support/gate-app';
import { active, introspectingGate } from '../../support/introspection';
import { AUDIENCE, ISSUER, NOW, NOW_MS, token } from '../../support/issuer';
import type { Members } from '../../support/issuer';
import { testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';

/** Claims that every token needs, and no others. */
const LEAST = { iss: ISSUER, aud: AUDIENCE, iat: NOW - 60, exp: NOW + 3_540, scope: 'orders:read' };
const OF_SUBJECT = { ...LEAST, sub: 'till-7' };

function signed(claims: Members, typ?: string): string {
  const { alg, kid } = testKey();
  return token({ rawHeader: JSON.stringify({ alg, kid, typ }), payload: JSON.stringify(claims) });
}

const jwtApp = (options: GateAppOptions = {}) => gateApp({ preset: 'jwt', ...options });

describe('the preset jwt', () => {
  it.each([undefined, 'JWT', 'jwt', 'at+jwt', 'application/at+jwt'])('accepts the type %s', async (typ) => {
    await jwtApp().get(signed(OF_SUBJECT, typ)).expect(200);
  });

  it.each(['logout+jwt', 'dpop+jwt', 'secevent+jwt', 'id_token', ''])('refuses the type %j', async (typ) => {
    const through = jwtApp();
    expectRefusal(await through.get(signed(OF_SUBJECT, typ)), 'wrong_type', through);
  });

  it.each([
    [{ scope: 'orders:read', scp: ['orders:write'] }, ['orders:read']],
    [{ scope: ['orders:read'] }, ['orders:read']],
    [{ scope: undefined, scp: 'orders:read' }, ['orders:read']],
    [{ scope: undefined, scp: ['orders:read'] }, ['orders:read']],
  ])('reads the scopes of %j', async (claims, scopes) => {
    const { body } = await jwtApp()
      .get(signed({ ...OF_SUBJECT, ...claims }))
      .expect(200);
    expect(body.auth.scopes).toEqual(scopes);
  });

  it.each([
    ['client_id before all others', { client_id: 'a', azp: 'b', cid: 'c', appid: 'd' }, 'a'],
    ['azp', { azp: 'b', cid: 'c', appid: 'd' }, 'b'],
    ['cid', { cid: 'c', appid: 'd' }, 'c'],
    ['appid', { appid: 'd' }, 'd'],
    ['sub, under another name', {}, 'sub:till-7'],
  ])('takes the client id from %s', async (_what, claims, clientId) => {
    const { body } = await jwtApp()
      .get(signed({ ...OF_SUBJECT, ...claims }))
      .expect(200);
    expect(body.auth).toMatchObject({ clientId, subject: 'till-7' });
  });

  it.each<[string, Members, string]>([
    ['sub is empty', { sub: '' }, 'client_id or azp or cid or appid or sub is missing'],
    ['sub is not a string', { sub: 7 }, 'sub is not a string'],
    ['a client id is empty', { azp: '' }, 'the client id is empty'],
    ['a client id is null', { azp: null }, 'azp is not a string'],
    ['there is none, and no sub', { sub: undefined }, 'client_id or azp or cid or appid or sub is missing'],
    ['exp is missing', { exp: undefined }, 'exp is missing'],
    ['iat is missing', { iat: undefined }, 'iat is missing'],
  ])('refuses a token where %s', async (_what, claims, detail) => {
    const through = jwtApp();
    expectRefusal(await through.get(signed({ ...OF_SUBJECT, ...claims })), 'invalid_claims', through, { detail });
  });

  it('needs aud', async () => {
    const through = jwtApp();
    for (const aud of [undefined, [], 'https://other.test']) {
      expectRefusal(await through.get(signed({ ...OF_SUBJECT, aud })), 'wrong_audience', through);
    }
    expect(() => jwtApp({ audience: false })).toThrow('option "audience" must be the aud of your API');
  });

  it('is never chosen by itself', () => {
    for (const issuer of ['https://login.example.com', 'https://jwt.example.com/jwt', 'https://gitlab.com', 'jwt']) {
      expect(presetOfUrl(issuer)).toBeUndefined();
    }
    expect(testGate().status().issuers).toMatchObject([{ preset: { name: 'rfc9068', chosenBy: 'default' } }]);
  });
});

describe('a token whose caller is its subject', () => {
  it.each([
    ['nonce', 'n'],
    ['auth_time', NOW],
    ['at_hash', 'x'],
    ['c_hash', 'x'],
    ['events', {}],
    ['events', null],
  ])('is no access token with %s: %j', async (name, value) => {
    const through = jwtApp();
    for (const typ of [undefined, 'JWT', 'at+jwt']) {
      expectRefusal(await through.get(signed({ ...OF_SUBJECT, [name]: value }, typ)), 'wrong_type', through);
    }
    const { checks } = await explain(signed({ ...OF_SUBJECT, [name]: value }), { gate: through.gate });
    const kind = name === 'events' ? 'a logout token' : 'an ID token';
    expect(checks.find(({ outcome }) => outcome === 'failed')?.detail).toBe(`${kind} (${name})`);
  });

  it.each(['nonce', 'auth_time', 'events'])('may have %s where a claim names the client', async (name) => {
    await jwtApp()
      .get(signed({ ...OF_SUBJECT, azp: 'pos-17', [name]: 1 }))
      .expect(200);
  });

  it('is named in the log by its caller, also when it is refused', async () => {
    const through = jwtApp();
    expectRefusal(await through.get(signed({ ...OF_SUBJECT, exp: NOW - 3_600 })), 'expired', through);
    expect(through.decisions.at(-1)).toMatchObject({ reason: 'expired', clientId: 'sub:till-7' });
  });

  it('can be named by clientIds', async () => {
    await jwtApp({ clientIds: ['sub:till-7'] })
      .get(signed(OF_SUBJECT))
      .expect(200);
    const through = jwtApp({ clientIds: ['till-7'] });
    expectRefusal(await through.get(signed(OF_SUBJECT)), 'wrong_audience', through);
  });

  it('shares places by its site, where that of a client counts', async () => {
    const units: string[] = [];
    const replayStore = { remember: (_id: string, _untilMs: number, unit: string) => units.push(unit) > 0 };
    const through = dpopApp({ replayStore }, { preset: 'jwt' });
    const bySubject = boundToken(undefined, { client_id: undefined, jti: 'by subject' });
    await through.send({ token: bySubject, proof: proof({ accessToken: bySubject }) }).expect(200);
    await through.send().expect(200);
    expect(units).toEqual(['site 127.0.0', `client ${ISSUER} pos-17`]);
  });
});

describe('a client id that begins with sub:', () => {
  const ALL = PRESET_NAMES.flatMap((preset) => PRESETS[preset].clientIdClaims.map((name) => [preset, name] as const));

  it.each(ALL)('is refused under the preset %s in %s', async (preset: PresetName, name) => {
    const { types, fixedClaims } = PRESETS[preset];
    const through = gateApp({ preset });
    const fixed = Object.fromEntries(fixedClaims.map(([claim, value]) => [claim, value]));
    const others = Object.fromEntries(PRESETS[preset].clientIdClaims.map((claim) => [claim, 'pos-17']));
    const good = { ...OF_SUBJECT, jti: '1', scp: 'orders:read', ...fixed, ...others };
    await through.get(signed(good, types[0])).expect(200);
    through.reached.length = 0;
    const detail = `${name} begins with "sub:", as the names of callers without a client id do`;
    for (const id of ['sub:till-7', 'sub:']) {
      const response = await through.get(signed({ ...good, [name]: id }, types[0]));
      expectRefusal(response, 'invalid_claims', through, { detail });
      expect(through.decisions.at(-1)?.clientId).not.toBe(id);
    }
  });

  it('is refused in an introspection response, whether the client may be missing or not', async () => {
    for (const generationClaim of [undefined, false] as const) {
      const through = introspectingGate({ generationClaim });
      through.endpoint.tokens.set('opaque', active({ client_id: 'sub:pos-17' }));
      expectRefusal(await through.get('opaque'), 'invalid_claims', through);
    }
  });

  it('is accepted in another case, and with the colon elsewhere', async () => {
    for (const id of ['SUB:till-7', 'sub', 'sub.till:7', ' sub:till-7']) {
      await jwtApp()
        .get(signed({ ...OF_SUBJECT, client_id: id }))
        .expect(200);
    }
  });
});

describe('the floors of a caller sub:till-7', () => {
  const CHANGED = (NOW - 59) * 1000;

  it.each(['till-7', 'sub:till-7'])('are also those of %s: first, cached and held', async (id) => {
    const time = fakeTime(NOW_MS);
    const { clock, schedule } = time;
    const generationSource = memoryGenerations({ clock, schedule });
    const through = jwtApp({ generationSource, clock, schedule });
    await time.advance(0);
    await remember(through, signed(OF_SUBJECT));
    const ended: string[] = [];
    through.gate.hold(through.decisions.at(-1)!.auth!, (reason) => ended.push(reason));
    await generationSource.append([[id, CHANGED]]);
    await time.advance(0);
    expect(ended).toEqual(['superseded']);
    expectRefusal(await through.get(signed(OF_SUBJECT)), 'superseded', through);
    expectRefusal(await through.get(signed({ ...OF_SUBJECT, jti: 'first' })), 'superseded', through);
    await through.get(signed({ ...OF_SUBJECT, iat: NOW - 59 })).expect(200);
    await through.gate.close();
  });

  it('are the higher one of the two, whichever came first', async () => {
    for (const order of [
      ['till-7', 'sub:till-7'],
      ['sub:till-7', 'till-7'],
    ] as const) {
      const generationSource = memoryGenerations({ clock: () => NOW_MS });
      const through = jwtApp({ generationSource });
      await through.gate.ready();
      await generationSource.append([[order[0], CHANGED + 1_000]]);
      await generationSource.append([[order[1], CHANGED]]);
      expectRefusal(await through.get(signed({ ...OF_SUBJECT, iat: NOW - 59 })), 'superseded', through);
      await through.get(signed({ ...OF_SUBJECT, iat: NOW - 58 })).expect(200);
      await through.gate.close();
    }
  });

  it('are no floors of a client till-7, and none of its subject', async () => {
    const generationSource = memoryGenerations({ clock: () => NOW_MS });
    const through = jwtApp({ generationSource });
    await through.gate.ready();
    await generationSource.append([['sub:sub:till-7', CHANGED], ['sub:till-7', CHANGED]]); // prettier-ignore
    await through.get(signed({ ...LEAST, client_id: 'till-7' })).expect(200);
    await through.get(signed({ ...OF_SUBJECT, client_id: 'pos-17' })).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(signed(OF_SUBJECT)), 'superseded', through);
    await through.gate.close();
  });

  it('are waited for where their time has not come', async () => {
    const time = fakeTime(NOW_MS);
    const { clock, schedule } = time;
    const ahead = memoryGenerations({ clock: () => NOW_MS + 600_000, schedule });
    const through = jwtApp({ generationSource: ahead, clock, schedule });
    await ahead.append([['till-7', NOW_MS + 600_000]]);
    await time.advance(0);
    expectRefusal(await through.get(signed(OF_SUBJECT)), 'generations_unavailable', through, { retryAfter: 5 });
    await through.get(signed({ ...LEAST, client_id: 'kiosk' })).expect(200);
    await time.advance(600_000);
    through.reached.length = 0;
    expectRefusal(await through.get(signed(OF_SUBJECT)), 'superseded', through);
    await through.gate.close();
  });

  it('rise with a stamped token of it, which proves nothing about a client till-7', async () => {
    const through = jwtApp();
    await through.get(signed({ ...OF_SUBJECT, generation: NOW_MS })).expect(200);
    await through.get(signed({ ...LEAST, client_id: 'till-7' })).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(signed(OF_SUBJECT)), 'superseded', through);
  });
});

describe('an issuer that signs for everybody', () => {
  it.each([
    'https://token.actions.githubusercontent.com',
    'https://token.actions.githubusercontent.com/shop',
    'https://gitlab.com',
    'https://accounts.google.com',
    'accounts.google.com',
  ])('needs clientIds: %s', async (issuer) => {
    const host = issuer.replace('https://', '').replace('/shop', '');
    expect(() => jwtApp({ issuer })).toThrow(
      new TypeError(
        `authenticate(): option "clientIds" is required for this issuer: ${host} signs tokens for everybody, with any aud: ` +
          'name the accepted callers, such as "sub:<sub of yours>"',
      ),
    );
    const through = jwtApp({ issuer, clientIds: ['sub:repo:shop/tills:ref:refs/heads/main'] });
    const claims = { ...LEAST, iss: issuer, sub: 'repo:shop/tills:ref:refs/heads/main' };
    await through.get(signed(claims)).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(signed({ ...claims, sub: 'repo:evil/tills' })), 'wrong_audience', through);
    await through.gate.close();
  });

  it.each(['https://gitlab.example.com', 'https://gitlab.com.example.com'])('is not %s', (issuer) => {
    expect(() => jwtApp({ issuer })).not.toThrow();
  });
});
