import type { PresetName, Reason } from '../../src';
import { PRESET_NAMES } from '../../src/token/presets';
import { PRESETS } from '../../src/token/presets';
import type { Preset } from '../../src/token/presets';
import { gateApp } from '../support/gate-app';
import { AUDIENCE, token } from '../support/issuer';
import { testKey } from '../support/keys';
import { expectRefusal } from '../support/refusals';
import { VENDOR_TOKENS } from '../support/vendor-tokens';
import type { VendorToken } from '../support/vendor-tokens';

/** T and so on: refused with this reason. Other letters are `=`, the preset itself, and `+`, a preset that accepts the shape too. */
const LETTERS: Readonly<Record<string, Reason>> = {
  T: 'wrong_type',
  C: 'invalid_claims',
  A: 'wrong_audience',
  G: 'generation_missing',
  S: 'insufficient_scope',
};

/** What each preset makes of the tokens of its neighbours. */
const HEAD = 'rfc9068 identityserver keycloak auth0 okta entra cognito hydra openiddict ping';
const SCOPES = { scopes: ['orders:read'] };
const TABLE: Readonly<Record<string, string>> = {
  'RFC 9068': '= G C + T T T T + +',
  'Duende: scopes as an array, no sub, generation as a string': 'C = C + T T T T C +',
  'Duende: scopes as a string, no aud': 'C = C A T T T T C C',
  OpenIddict: 'C G C + T T T T = +',
  'Keycloak: service account': 'T T = + C S C + T +',
  'Keycloak: at+jwt by an option of the client': 'G G = + T T T T + +',
  'Auth0: own profile': 'T T C = C S C C T C',
  'Auth0: RFC 9068 profile': 'G G C = T T T T + +',
  'Auth0: permissions of RBAC alone': 'T T C = C S C C T C',
  Okta: 'T T T T = T C T T C',
  'Entra v2: app roles': 'T T C S C = C C T C',
  'Entra v1: appid': 'T T C C C = C C T C',
  'Cognito: no aud, scopes after the resource server': 'T T T T C T = T T C',
  'Hydra: scp as an array': 'T T C S C C C = T S',
  'Hydra: scope as a string': 'T T C + C C C = T +',
  'PingOne: at+jwt': 'C G C + T T T T C =',
  'PingOne: no typ, as before 2027-03-02': 'T T T T C T C T T =',
  'PingFederate: JWT': 'T T C + C C C + T =',
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
    const { alg, kid } = testKey();
    const rawHeader = JSON.stringify({ alg, kid, typ: vendor.typ });
    const raw = token({ rawHeader, payload: JSON.stringify(vendor.claims) });
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
