import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { requireScope } from '../../../src/gate';
import type { PresetName, Reason } from '../../../src/gate';
import { PRESET_NAMES, PRESETS } from '../../../src/gate/token/presets';
import type { Preset } from '../../../src/gate/token/presets';
import { gateApp } from '../../support/gate-app';
import type { GateApp, GateAppOptions } from '../../support/gate-app';
import { memoryGenerations } from '../../../src/gate/generation';
import { GENERATION, NOW, token, AUDIENCE } from '../../support/issuer';
import { testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';
import { PEOPLE_TOKENS } from '../../support/people-tokens';
import { VENDOR_TOKENS } from '../../support/vendor-tokens';
import type { VendorToken } from '../../support/vendor-tokens';

/** Signs a vendor's token as it is: header and payload contain only what the vendor puts there. */
function tokenOf({ typ, claims }: Pick<VendorToken, 'typ' | 'claims'>): string {
  const { alg, kid } = testKey();
  return token({ rawHeader: JSON.stringify({ alg, kid, typ }), payload: JSON.stringify(claims) });
}

type Changes = { readonly typ?: string | undefined; readonly claims?: Readonly<Record<string, unknown>> };

/** A gate with that preset, whose route requires the first of the token's scopes. */
function gateFor(
  { preset, audience, scopes: [scope = 'orders:read'] }: VendorToken,
  options: GateAppOptions = {},
): GateApp {
  return gateApp({
    preset,
    audience,
    ...options,
    routes: (app, reach) => void app.get('/v1/orders', requireScope(scope), reach),
  });
}

function first(preset: PresetName): VendorToken {
  const found = VENDOR_TOKENS.find((vendor) => vendor.preset === preset);
  if (!found) throw new Error(`no token for ${preset}`);
  return found;
}

/** Presets whose issuers stamp a generation by themselves. */
const STAMPING: readonly PresetName[] = ['rfc9068', 'identityserver'];
const UNSTAMPED = VENDOR_TOKENS.filter(({ preset }) => !STAMPING.includes(preset));

describe('presets: tokens as authorization servers make them', () => {
  it('has a token for every preset', () => {
    expect(new Set(VENDOR_TOKENS.map(({ preset }) => preset))).toEqual(new Set(PRESET_NAMES));
  });

  it.each(VENDOR_TOKENS)('$preset accepts $name', async (vendor) => {
    const response = await gateFor(vendor).get(tokenOf(vendor)).expect(200);
    expect(response.body.auth).toMatchObject({
      clientId: vendor.clientId,
      scopes: vendor.scopes,
      generation: STAMPING.includes(vendor.preset) ? GENERATION : NOW * 1000,
      claims: vendor.claims,
    });
    expect(response.body.auth.subject).toBe(vendor.subject);
  });

  it('has a token of a person for every preset', () => {
    expect(PEOPLE_TOKENS.map(({ preset }) => preset)).toEqual(PRESET_NAMES);
  });

  it.each(PEOPLE_TOKENS)('$preset reads $name as docs/recipes.md says', async (person) => {
    const response = await gateFor(person, person.options).get(tokenOf(person)).expect(200);
    const { preset, clientId, scopes, subject, scopesFrom, alsoIn } = person;
    expect(response.body.auth).toMatchObject({ clientId, scopes, subject, claims: person.claims });
    const cells = [preset, scopesFrom, ...alsoIn].map((name) => `\`${name}\``);
    const page = readFileSync(join(__dirname, '../../../docs/recipes.md'), 'utf8');
    const row = page.split('\n').find((line) => line.startsWith(`| ${cells[0]} `)) ?? '';
    const [claim, from, ...more] = cells;
    const shown = row.split('|').map((cell) => cell.trim());
    expect(shown).toEqual(['', claim, from, more.join(', '), expect.any(String), '']);
  });

  const ZERO_FIRST = { client_generation: `0${GENERATION}` };
  const OF_DPOP = { typ: 'DPoP', cnf: { jkt: 'x' } };
  const ID_TOKEN = { client_id: undefined, aud: 'pos-17', nonce: 'n' };
  const rows: readonly [PresetName, string, Changes, Reason][] = [
    ['rfc9068', 'typ JWT', { typ: 'JWT' }, 'wrong_type'],
    ['rfc9068', 'azp in place of client_id', { claims: { client_id: undefined, azp: 'pos-17' } }, 'invalid_claims'],
    ['rfc9068', 'a generation as a string', { claims: { generation: String(GENERATION) } }, 'generation_invalid'],
    ['identityserver', 'typ JWT', { typ: 'JWT' }, 'wrong_type'],
    ['identityserver', 'no client_id', { claims: { client_id: undefined } }, 'invalid_claims'],
    ['identityserver', 'a generation of null', { claims: { client_generation: null } }, 'generation_missing'],
    ['identityserver', 'a generation with a leading zero', { claims: ZERO_FIRST }, 'generation_invalid'],
    ['openiddict', 'no sub', { claims: { sub: undefined } }, 'invalid_claims'],
    ['openiddict', 'typ JWT', { typ: 'JWT' }, 'wrong_type'],
    ['keycloak', 'the payload of an ID token', { claims: { typ: 'ID' } }, 'invalid_claims'],
    ['keycloak', 'the payload of a refresh token', { claims: { typ: 'Refresh' } }, 'invalid_claims'],
    ['keycloak', 'the audience account alone', { claims: { aud: 'account' } }, 'wrong_audience'],
    ['keycloak', 'no typ', { typ: undefined }, 'wrong_type'],
    ['keycloak', 'the type DPoP without a key', { claims: { typ: 'DPoP' } }, 'invalid_claims'],
    ['keycloak', 'the type DPoP at a gate without it', { claims: OF_DPOP }, 'sender_constrained'],
    ['auth0', 'no typ', { typ: undefined }, 'wrong_type'],
    ['auth0', 'no aud', { claims: { aud: undefined } }, 'wrong_audience'],
    ['okta', 'client_id in place of cid', { claims: { cid: undefined, client_id: 'pos-17' } }, 'invalid_claims'],
    ['okta', 'typ at+jwt', { typ: 'at+jwt' }, 'wrong_type'],
    ['entra', 'no azp and no appid', { claims: { azp: undefined, client_id: 'pos-17' } }, 'invalid_claims'],
    ['entra', 'no typ', { typ: undefined }, 'wrong_type'],
    ['cognito', 'the token_use of an ID token', { claims: { token_use: 'id' } }, 'invalid_claims'],
    ['cognito', 'no token_use', { claims: { token_use: undefined } }, 'invalid_claims'],
    ['hydra', 'an empty aud', { claims: { aud: [] } }, 'wrong_audience'],
    ['hydra', 'no typ', { typ: undefined }, 'wrong_type'],
    ['ping', 'another typ', { typ: 'logout+jwt' }, 'wrong_type'],
    ['ping', 'the payload of an ID token of PingOne', { typ: undefined, claims: ID_TOKEN }, 'invalid_claims'],
    ['ping', 'no aud', { claims: { aud: undefined } }, 'invalid_claims'],
    ['jwt', 'another typ', { typ: 'logout+jwt' }, 'wrong_type'],
    ['jwt', 'no aud', { claims: { aud: undefined } }, 'wrong_audience'],
    ['jwt', 'no client id and no sub', { claims: { sub: undefined } }, 'invalid_claims'],
  ];
  it.each(rows)('%s refuses %s', async (preset, _what, changes, reason) => {
    const vendor = first(preset);
    const through = gateFor(vendor);
    const changed = {
      typ: 'typ' in changes ? changes.typ : vendor.typ,
      claims: { ...vendor.claims, ...changes.claims },
    };
    expectRefusal(await through.get(tokenOf(changed)), reason, through);
  });

  it('has a refused token for every preset', () => {
    expect(new Set(rows.map(([preset]) => preset))).toEqual(new Set(PRESET_NAMES));
  });

  it.each<[PresetName, Record<string, unknown>]>([
    ['okta', { scp: undefined, scope: 'orders:read' }],
    ['entra', { scp: '' }],
    ['entra', { roles: undefined, scope: 'orders:read' }],
    ['keycloak', { scope: '', realm_access: { roles: ['orders:read'] } }],
    ['rfc9068', { scope: undefined, scp: ['orders:read'] }],
    ['identityserver', { scope: undefined, permissions: ['orders:read'] }],
  ])('%s ignores the scope claims of other vendors: %j', async (preset, claims) => {
    const vendor = first(preset);
    const through = gateFor(vendor);
    const response = await through.get(tokenOf({ typ: vendor.typ, claims: { ...vendor.claims, ...claims } }));
    expectRefusal(response, 'insufficient_scope', through, { scopes: ['orders:read'] });
  });

  it('checks the client id against a list when there is no audience (Cognito)', async () => {
    const vendor = first('cognito');
    const accepting = (...clientIds: string[]): GateApp => gateFor(vendor, { audience: false, clientIds });
    await accepting('other', vendor.clientId).get(tokenOf(vendor)).expect(200);
    const others = accepting('other');
    expectRefusal(await others.get(tokenOf(vendor)), 'wrong_audience', others);
  });

  describe.each(UNSTAMPED)('$name, which carries no generation', (vendor) => {
    it('is superseded by a floor after its issue time', async () => {
      const generationSource = memoryGenerations({ clock: () => NOW * 1000 });
      const through = gateFor(vendor, { generationSource });
      await through.get(tokenOf(vendor)).expect(200);
      await generationSource.append([[vendor.clientId, NOW * 1000]]);
      await through.get(tokenOf(vendor)).expect(200);
      await generationSource.append([[vendor.clientId, NOW * 1000 + 1]]);
      through.reached.length = 0;
      expectRefusal(await through.get(tokenOf(vendor)), 'superseded', through);
    });

    it('is refused as soon as the operator names a claim', async () => {
      const through = gateFor(vendor, { generationClaim: 'generation' });
      expectRefusal(await through.get(tokenOf(vendor)), 'generation_missing', through);
    });

    it('is accepted without a source, which one line says', async () => {
      const through = gateFor(vendor);
      for (const _ of [1, 2]) await through.get(tokenOf(vendor)).expect(200);
      const message = expect.stringContaining('a change of a credential is not noticed') as string;
      expect(through.log.entries).toMatchObject([{ level: 'warn', message }]);
      expect(through.gate.status().issuers).toMatchObject([{ generations: { changes: 'not at all' } }]);
    });
  });
});

describe('a token of one authorization server, at the presets of others', () => {
  /** T and so on: refused with this reason. Other letters are `=`, the preset itself, and `+`, a preset that accepts the shape too. */
  const LETTERS: Readonly<Record<string, Reason>> = {
    T: 'wrong_type',
    C: 'invalid_claims',
    A: 'wrong_audience',
    S: 'insufficient_scope',
  };

  /** What each preset makes of the tokens of its neighbours. */
  const HEAD = 'rfc9068 identityserver keycloak auth0 okta entra cognito hydra openiddict ping jwt';
  const SCOPES = { scopes: ['orders:read'] };
  const TABLE: Readonly<Record<string, string>> = {
    'RFC 9068': '= + C + T T T T + + +',
    'Duende: scopes as an array, no sub, generation as a string': 'C = C + T T T T C + +',
    'Duende: scopes as a string, no aud': 'C = C A T T T T C C A',
    OpenIddict: 'C + C + T T T T = + +',
    'Keycloak: service account': 'T T = + C S C + T + +',
    'Keycloak: at+jwt by an option of the client': '+ + = + T T T T + + +',
    'Auth0: own profile': 'T T C = C S C C T C +',
    'Auth0: RFC 9068 profile': '+ + C = T T T T + + +',
    'Auth0: permissions of RBAC alone': 'T T C = C S C C T C S',
    Okta: 'T T T T = T C T T C +',
    'Entra v2: app roles': 'T T C S C = C C T C S',
    'Entra v1: appid': 'T T C C C = C C T C S',
    'Cognito: no aud, scopes after the resource server': 'T T T T C T = T T C A',
    'Hydra: scp as an array': 'T T C S C C C = T S +',
    'Hydra: scope as a string': 'T T C + C C C = T + +',
    'PingOne: at+jwt': 'C + C + T T T T C = +',
    'PingOne: no typ, as before 2027-03-02': 'T T T T C T C T T = +',
    'PingFederate: JWT': 'T T C + C C C + T = +',
    'Spring: no typ, no client id but sub, scopes as an array': 'T T T T C T C T T C =',
    'nanoidp: JWT with client_id': 'T T C + C C + + T + =',
    'a server with azp and scp, at+jwt': 'C C C S T T T T C C =',
  };

  function gateFor(preset: PresetName, { audience }: VendorToken): ReturnType<typeof gateApp> {
    const rules: Preset = PRESETS[preset];
    return gateApp({ preset, audience: audience === false && !rules.audienceCanBeAbsent ? AUDIENCE : audience });
  }

  it('has a row for each token of a vendor, and a column for each preset', () => {
    expect(Object.keys(TABLE)).toEqual(VENDOR_TOKENS.map(({ name }) => name));
    expect(HEAD.split(' ')).toEqual([...PRESET_NAMES]);
  });

  it.each(VENDOR_TOKENS)(
    'a token of $name is refused by the presets of others, with the right reason',
    async (vendor) => {
      const raw = tokenOf(vendor);
      const row = TABLE[vendor.name]?.split(' ') ?? [];
      for (const [index, preset] of PRESET_NAMES.entries()) {
        const letter = row[index] ?? '';
        const through = gateFor(preset, vendor);
        const response = await through.get(raw);
        const reason = LETTERS[letter];
        if (preset === vendor.preset) expect([preset, letter]).toEqual([preset, '=']);
        else if (reason) expectRefusal(response, reason, through, reason === 'insufficient_scope' ? SCOPES : {});
        else expect([preset, letter, response.status]).toEqual([preset, '+', 200]);
      }
    },
  );
});
