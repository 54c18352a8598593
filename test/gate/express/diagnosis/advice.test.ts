import { authenticate, explain } from '../../../../src/gate/index';
import type { AuthenticateOptions, PresetName, Reason } from '../../../../src/gate/index';
import { configurationAdvice } from '../../../../src/gate/express/diagnosis/advice';
import { recognizeToken } from '../../../../src/gate/express/diagnosis/recognition';
import { PRESET_NAMES, PRESETS } from '../../../../src/gate/token/presets';
import { amount } from '../../../support/amount';
import { AUDIENCE, ISSUER, NOW, NOW_MS, token } from '../../../support/issuer';
import type { Members } from '../../../support/issuer';
import { jwks, testKey } from '../../../support/keys';
import { VENDOR_TOKENS } from '../../../support/vendor-tokens';

type Options = Extract<AuthenticateOptions, { readonly issuer: string }>;

/** A gate as somebody configures it who knows issuer and audience, and nothing else. */
const configured = (preset: PresetName): Options => ({ issuer: ISSUER, audience: AUDIENCE, preset });

const tokens = new Map<string, string>();

/** A token with exactly these claims; the same one for the same claims, which gates of all presets get. */
function signed(claims: Members, typ?: string): string {
  const { alg, kid } = testKey();
  const [rawHeader, payload] = [JSON.stringify({ alg, kid, typ }), JSON.stringify(claims)];
  const made = tokens.get(rawHeader + payload) ?? token({ rawHeader, payload });
  tokens.set(rawHeader + payload, made);
  return made;
}

type Refusal = Awaited<ReturnType<typeof explain>>['checks'][number];

/** Why a gate refuses a token; `undefined`: it accepts it. */
async function refusalOf(raw: string, options: Options): Promise<Reason | undefined> {
  return (await failedCheckOf(raw, options))?.reason;
}

/** By their options: an option is followed from many tokens. */
const gates = new Map<string, ReturnType<typeof authenticate>>();
afterAll(() => Promise.all([...gates.values()].map((gate) => gate.close())));

async function failedCheckOf(raw: string, options: Options): Promise<Refusal | undefined> {
  const name = JSON.stringify(options);
  const quiet = { info() {}, warn() {}, error() {} };
  const trusted = { keys: jwks(testKey()), jwksUri: undefined, clock: () => NOW_MS, logger: quiet };
  const gate = gates.get(name) ?? authenticate({ ...options, ...trusted });
  gates.set(name, gate);
  const { checks } = await explain(raw, { gate });
  return checks.find(({ outcome }) => outcome === 'failed');
}

/** Does what the advice says, again and again, until there is none. Returns the last refusal, and all advice. */
async function followed(
  raw: string,
  start: Options,
): Promise<{ reason: Reason | undefined; advice: string[]; options: Options }> {
  let options = start;
  const advice: string[] = [];
  let chosen: unknown;
  for (let tries = 0; tries < 10; tries++) {
    const { reason, detail } = (await failedCheckOf(raw, options)) ?? {};
    if (reason === undefined) return { reason, advice, options };
    // The preset for any server is advised only where it accepts the token.
    const isOfPreset = reason === 'wrong_type' || reason === 'invalid_claims';
    if (isOfPreset && chosen === 'jwt') throw new Error(`jwt was advised, and refuses: ${reason}: ${detail}`);
    const given = configurationAdvice({ reason, privateDetail: detail }, raw, {
      issuer: options.issuer,
      // A copy, as the command makes one: presets are compared by their names.
      preset: { ...PRESETS[options.preset as PresetName] },
      presetName: options.preset,
    });
    if (given && advice.includes(given.why)) throw new Error(`the same advice twice: ${given.why}`);
    if (given) advice.push(given.why);
    if (given?.value === undefined) {
      // Where no option helps, the advice says what the server or the client has to do.
      if (isOfPreset && !DOES.test(`${given?.why}: ${given?.otherwise}`)) throw new Error(`${reason}: ${given?.why}`);
      return { reason, advice, options };
    }
    chosen = given.option === 'preset' ? given.value : undefined;
    options = { ...options, [given.option as string]: given.value };
  }
  throw new Error(`the advice goes round in a circle: ${advice.join('; ')}`);
}

const DOES =
  /the server must add|have the (?:issuer|authorization server)|: (?:send|request) |leave AccessTokenJwtType/;

const LOGIN = { iss: ISSUER, sub: 'ana', aud: 'shop-app', iat: NOW - 10, exp: NOW + 3_600 };
const OF_CLIENT = { azp: 'shop-app', client_id: 'shop-app', cid: 'shop-app', jti: '1', generation: NOW_MS - 60_000 };

/** ID tokens (OpenID Connect Core 1.0 section 2), as vendors make them and worse. */
const ID_TOKENS: Readonly<Record<string, Members>> = {
  'a hash of the access token': { ...LOGIN, ...OF_CLIENT, at_hash: 'x', scope: 'openid orders:read' },
  'a hash of the code, for the API': { ...LOGIN, ...OF_CLIENT, aud: AUDIENCE, c_hash: 'x', scope: 'orders:read' },
  'a nonce': { ...LOGIN, ...OF_CLIENT, nonce: 'n' },
  'the time of the login': { ...LOGIN, ...OF_CLIENT, aud: ['shop-app'], auth_time: NOW - 10 },
  Keycloak: { ...LOGIN, typ: 'ID', azp: 'shop-app', auth_time: NOW - 10, nonce: 'n', at_hash: 'x', jti: '1' },
  Auth0: { ...LOGIN, azp: 'shop-app', nonce: 'n', sid: 's' },
  'Auth0 without a nonce': { ...LOGIN, azp: 'shop-app' },
  'Entra v2': { ...LOGIN, azp: 'shop-app', tid: 't', oid: 'o', ver: '2.0', nonce: 'n', roles: ['orders:read'] },
  'Entra v1': { ...LOGIN, appid: 'shop-app', tid: 't', oid: 'o', ver: '1.0', nonce: 'n' },
  Okta: { ...LOGIN, ver: 1, jti: 'ID.x', amr: ['pwd'], auth_time: NOW - 10, at_hash: 'x' },
  Cognito: { ...LOGIN, token_use: 'id', auth_time: NOW - 10, 'cognito:username': 'ana' },
  Hydra: { ...LOGIN, auth_time: NOW - 10, rat: NOW - 20, at_hash: 'x', sid: 's', jti: '1' },
  Duende: { ...LOGIN, nbf: NOW, nonce: 'n', at_hash: 'x', sid: 's', auth_time: NOW - 10, amr: ['pwd'] },
  OpenIddict: { ...LOGIN, azp: 'shop-app', oi_au_id: '1', oi_tkn_id: '7', at_hash: 'x', nonce: 'n' },
  PingOne: { ...LOGIN, client_id: 'shop-app', jti: '1', nonce: 'n', at_hash: 'x', auth_time: NOW - 10 },
};

/** Other tokens that issuers sign with the same keys. */
const OTHERS: readonly (readonly [name: string, typ: string | undefined, claims: Members])[] = [
  ['a logout token', 'logout+jwt', { ...LOGIN, ...OF_CLIENT, aud: AUDIENCE, events: {} }],
  ['a security event', 'secevent+jwt', { ...LOGIN, ...OF_CLIENT, aud: AUDIENCE, events: {} }],
  ['a DPoP proof', 'dpop+jwt', { ...LOGIN, ...OF_CLIENT, aud: AUDIENCE, htm: 'GET', htu: 'https://api.test/' }],
  ['a refresh token of Keycloak', 'JWT', { ...LOGIN, ...OF_CLIENT, aud: AUDIENCE, typ: 'Refresh' }],
  ['a Cognito token for reading the user', undefined, { ...LOGIN, ...OF_CLIENT, aud: AUDIENCE, token_use: 'id' }],
];

const firstType = (name: PresetName): string | undefined => PRESETS[name].types.find(Boolean);
const RECOGNIZED = Object.entries(ID_TOKENS).filter(([, claims]) => 'at_hash' in claims || 'c_hash' in claims);

describe('an ID token', () => {
  it.each(PRESET_NAMES)('is refused as wrong_type by the preset %s, whatever its typ says', async (preset) => {
    const types = [...PRESETS[preset].types, 'JWT', 'at+jwt'];
    for (const typ of types) {
      for (const [name, claims] of [
        ...RECOGNIZED,
        ['a nonce', ID_TOKENS['a nonce']],
        ['', ID_TOKENS['the time of the login']],
      ] as const) {
        const options = { ...configured(preset), audience: ['shop-app', AUDIENCE], generationClaim: false } as const;
        expect([name, await refusalOf(signed(claims as Members, typ), options)]).toEqual([name, 'wrong_type']);
      }
    }
  });

  it.each(PRESET_NAMES)('gets the advice to send the access token, under the preset %s', async (preset) => {
    const { advice } = await followed(signed(ID_TOKENS['a nonce'] as Members, firstType(preset)), configured(preset));
    expect(advice).toEqual([
      'this is an ID token, which is for the client itself: send the access token, and request one for the audience of this API',
    ]);
  });
});

describe('an access token is none', () => {
  it.each([
    ['Keycloak: nonce, no scope, for its own client', { typ: 'Bearer', azp: 'shop-app', nonce: 'n' }, 'keycloak'],
    ['Cognito: the time of the login', { token_use: 'access', client_id: 'shop-app', auth_time: NOW }, 'cognito'],
    ['a nonce and scopes', { azp: 'shop-app', nonce: 'n', scope: 'orders:read' }, 'auth0'],
    ['scopes as scp', { azp: 'shop-app', auth_time: NOW, scp: 'orders:read' }, 'entra'],
    ['a second audience', { azp: 'shop-app', auth_time: NOW, aud: ['shop-app', AUDIENCE] }, 'auth0'],
    ['no sign of a login', { azp: 'shop-app' }, 'auth0'],
  ] as const)('%s', async (_what, claims, preset) => {
    const options = { ...configured(preset), audience: 'shop-app' };
    expect(await refusalOf(signed({ ...LOGIN, ...claims }, 'JWT'), options)).toBeUndefined();
  });
});

describe('all advice, followed to its end', () => {
  it.each(PRESET_NAMES)('makes a gate that began with the preset %s accept no ID token', async (preset) => {
    for (const typ of ['JWT', 'at+jwt', undefined]) {
      for (const [name, claims] of Object.entries(ID_TOKENS)) {
        const { reason, advice } = await followed(signed(claims, typ), configured(preset));
        expect([name, typ, reason, advice]).toEqual([name, typ, expect.any(String), expect.any(Array)]);
      }
    }
  });

  it.each(PRESET_NAMES)('makes a gate accept no other kind of token that the preset %s refuses', async (preset) => {
    for (const [name, typ, claims] of OTHERS) {
      const { reason, advice } = await followed(signed(claims, typ), configured(preset));
      // What another family marks by a claim of its own is refused by the preset of that family.
      const isKnown = typ?.includes('+') === true || PRESETS[preset].fixedClaims.length > 0;
      if (isKnown || advice.length > 0) expect([name, reason, advice]).toEqual([name, expect.any(String), advice]);
    }
  });

  it.each(VENDOR_TOKENS.filter(({ claims, typ }) => recognizeToken({ claims, header: { typ } })))(
    'makes a gate accept an access token: $name',
    async ({ preset, typ, claims, audience }) => {
      const wrong: Options = {
        issuer: 'https://other.test',
        audience: audience === false ? false : 'https://other.test',
        preset: audience === false ? preset : 'rfc9068',
        maxTokenAgeSeconds: 60,
      };
      const { reason, advice } = await followed(signed(claims, typ), wrong);
      expect(reason).toBeUndefined();
      expect(advice).not.toEqual([]);
    },
  );
});

describe('the advice about the audience', () => {
  const OTHER_API = 'https://other-api.test';
  /** What tokens have as aud whichever API they are for. */
  const SHARED: readonly (readonly [name: string, aud: string, advice: RegExp])[] = [
    ['of a Keycloak realm', 'account', /add a mapper of the type Audience with the audience of this API/],
    ['of signed-in users', 'authenticated', /add the audience of this API/],
    ['of a cluster', 'https://kubernetes.default.svc', /project the token with the audience of this API/],
    ['of a cluster, with its domain', 'https://kubernetes.default.svc.cluster.local', /serviceAccountToken\.audience/],
    ['of the userinfo endpoint', `${ISSUER}/userinfo`, /the client must ask for a token of this API/],
    ['of all resources of IdentityServer', `${ISSUER}/resources`, /the client must ask for a token of this API/],
    ['of the Management API of Auth0', `${ISSUER}/api/v2/`, /the client must ask for a token of this API/],
    ['of the client itself', 'pos-17', /request an access token for the audience of this API/],
  ];
  const TOKENS = VENDOR_TOKENS.filter(({ audience }) => audience !== false);
  const start = (preset: PresetName): Options => ({ ...configured(preset), audience: 'https://not-set.test' });

  it.each(SHARED)('proposes none %s, and names what adds one', async (_name, aud, expected) => {
    for (const { name, preset, typ, claims } of TOKENS) {
      const { reason, advice, options } = await followed(signed({ ...claims, aud }, typ), start(preset));
      expect([name, reason, options.audience]).toEqual([name, 'wrong_audience', 'https://not-set.test']);
      expect(advice.at(-1)).toMatch(expected);
    }
  });

  it.each(SHARED)('never opens the API to tokens of another one: also %s', async (_name, aud) => {
    for (const { name, preset, typ, claims, audience } of TOKENS) {
      for (const list of [
        [aud, audience],
        [audience, aud],
      ]) {
        const { reason, options } = await followed(signed({ ...claims, aud: list }, typ), start(preset));
        expect([name, reason, options.audience]).toEqual([name, undefined, audience]);
        for (const other of [OTHER_API, aud, [OTHER_API, aud], [aud, OTHER_API]]) {
          const refused = await refusalOf(signed({ ...claims, aud: other }, typ), options);
          expect([name, other, refused]).toEqual([name, other, 'wrong_audience']);
        }
      }
    }
  });
});

describe('the tokens of vendors', () => {
  /** Only the URL of the issuer or of its key set shows the vendor, if anything does. */
  const WITHOUT_SIGNS = [
    'RFC 9068',
    'Auth0: RFC 9068 profile',
    'Auth0: permissions of RBAC alone',
    'Entra v1: appid',
    'Hydra: scope as a string',
    'PingOne: at+jwt',
    'PingOne: no typ, as before 2027-03-02',
    'PingFederate: JWT',
    'Spring: no typ, no client id but sub, scopes as an array',
    'nanoidp: JWT with client_id',
    'a server with azp and scp, at+jwt',
  ];

  it.each(VENDOR_TOKENS)('are recognized by their signs, or listed as tokens without any: $name', (vendor) => {
    const { name, preset, typ, claims } = vendor;
    const iss = preset === 'cognito' ? 'https://cognito-idp.eu-central-1.amazonaws.com/pool' : ISSUER;
    const recognized = recognizeToken({ header: { typ }, claims: { ...claims, iss } })?.preset;
    expect(recognized).toBe(WITHOUT_SIGNS.includes(name) ? undefined : preset);
  });
});

describe('no advice comes twice, and none leads to a preset that refuses too', () => {
  const TEXTS = ['iss', 'aud', 'sub', 'jti', 'client_id', 'azp', 'cid', 'appid', 'typ', 'token_use', 'tid'];
  const OTHERS = ['exp', 'iat', 'nbf', 'cnf', 'scope', 'scp', 'generation', 'client_generation'];
  const CLAIMS = [...TEXTS, ...OTHERS];
  const ONE_EACH = PRESET_NAMES.flatMap((name) => VENDOR_TOKENS.find(({ preset }) => preset === name) ?? []);
  const KEPT: Members = { aud: AUDIENCE, exp: NOW + 600 };
  /** What is changed in a token: claims, or the `typ` of its header. */
  const CHANGES: readonly (readonly [what: string, claims: Members, typ?: string | null])[] = [
    ...CLAIMS.map((claim) => [`no ${claim}`, { [claim]: undefined }] as const),
    ...CLAIMS.map((claim) => [`${claim} of another type`, { [claim]: TEXTS.includes(claim) ? 17 : '17' }] as const),
    ...CLAIMS.map((claim) => [`${claim} is null`, { [claim]: null }] as const),
    ...['JWT', 'at+jwt', 'id_token+jwt', null].map((typ) => [`typ ${typ}`, {}, typ] as const),
    ['aud and exp alone', Object.fromEntries(CLAIMS.map((name) => [name, KEPT[name]])), 'JWT'],
  ];

  /** In `npm test` each token has every fifth change, other ones under each preset. */
  const PART = amount(5, 1);

  it.each(PRESET_NAMES)('whatever is missing or wrong, under the preset %s', async (preset) => {
    for (const [at, { name, typ, claims, audience }] of ONE_EACH.entries()) {
      const first = at + PRESET_NAMES.indexOf(preset);
      const canBeFalse = audience === false && PRESETS[preset].audienceCanBeAbsent;
      const options = { ...configured(preset), audience: canBeFalse ? (false as const) : AUDIENCE };
      for (const [what, changes, otherType] of CHANGES.filter((_change, place) => (place + first) % PART === 0)) {
        const raw = signed({ ...claims, ...changes }, otherType === undefined ? typ : (otherType ?? undefined));
        const { reason, advice } = await followed(raw, options);
        // What is refused for its claims is never refused without a word.
        if (reason === 'invalid_claims' || reason === 'wrong_type') {
          expect([name, what, advice]).toEqual([name, what, [expect.any(String), ...advice.slice(1)]]);
        }
      }
    }
  });
});
