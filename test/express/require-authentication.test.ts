import { requireAuthentication, requireScope } from '../../src';
import { requirementOf } from '../../src/express/guard';
import { gateApp } from '../support/gate-app';
import type { GateApp } from '../support/gate-app';
import { NOW_MS, token } from '../support/issuer';
import { expectRefusal } from '../support/refusals';

const NOW = NOW_MS / 1000;
const MFA = 'urn:example:mfa';

function appWith(required: Parameters<typeof requireAuthentication>[0], refusals?: 'next'): GateApp {
  return gateApp({
    ...(refusals && { refusals }),
    routes: (app, reach) => app.get('/v1/orders', requireScope('orders:read'), requireAuthentication(required), reach),
  });
}

describe('requireAuthentication()', () => {
  it.each([
    [{ acr: MFA }, { acr: MFA }],
    [{ acr: ['silver', MFA] }, { acr: 'silver' }],
    [{ maxAgeSeconds: 300 }, { auth_time: NOW - 300 }],
    [{ maxAgeSeconds: 300 }, { auth_time: NOW + 60 }],
    [
      { acr: MFA, maxAgeSeconds: 0 },
      { acr: MFA, auth_time: NOW },
    ],
  ])('%j allows a token with %j', async (required, claims) => {
    expect((await appWith(required).get(token({ claims }))).status).toBe(200);
  });

  it.each([
    [{ acr: MFA }, {}, `acr_values="${MFA}"`],
    [{ acr: MFA }, { acr: 'bronze' }, `acr_values="${MFA}"`],
    [{ acr: MFA }, { acr: [MFA] }, `acr_values="${MFA}"`],
    [{ acr: ['silver', MFA] }, { acr: 'Silver' }, `acr_values="silver ${MFA}"`],
    [{ maxAgeSeconds: 300 }, {}, 'max_age="300"'],
    [{ maxAgeSeconds: 300 }, { auth_time: NOW - 301 }, 'max_age="300"'],
    [{ maxAgeSeconds: 300 }, { auth_time: NOW + 61 }, 'max_age="300"'],
    [{ maxAgeSeconds: 300 }, { auth_time: String(NOW) }, 'max_age="300"'],
    [{ acr: MFA, maxAgeSeconds: 60 }, { acr: MFA, auth_time: NOW - 61 }, `acr_values="${MFA}", max_age="60"`],
  ])('%j refuses a token with %j, and says what is needed', async (required, claims, needs) => {
    for (const through of [appWith(required), appWith(required, 'next')]) {
      const { status, body, headers } = await through.get(token({ claims }));
      expect([status, body]).toEqual([401, expect.objectContaining({ code: 'step_up_required', status: 401 })]);
      const description = 'The user has to authenticate again, or more strongly, for this resource.';
      expect(headers['www-authenticate']).toBe(
        `Bearer realm="api", error="insufficient_user_authentication", error_description="${description}", ${needs}`,
      );
      expect(through.reached).toEqual([]);
    }
  });

  it('names what each route needs, whatever another one did', async () => {
    const through = gateApp({
      routes: (app, reach) => {
        app.get('/v1/a', requireAuthentication({ acr: 'a' }), reach);
        app.get('/v1/b', requireAuthentication({ acr: 'b' }), reach);
      },
    });
    const challenges = [];
    for (const path of ['/v1/a', '/v1/b', '/v1/a']) {
      challenges.push((await through.get(token(), path)).headers['www-authenticate']);
    }
    expect(challenges.map((challenge) => /acr_values="(.*?)"/.exec(String(challenge))?.[1])).toEqual(['a', 'b', 'a']);
  });

  it('is no substitute for a token', async () => {
    const through = appWith({ acr: MFA });
    expectRefusal(await through.get(), 'missing_token', through);
  });

  it.each([
    [undefined, 'requireAuthentication(): expected'],
    [{}, 'requireAuthentication(): expected "acr", "maxAgeSeconds", or both'],
    [{ acr: '' }, 'option "acr" must be a class without blanks, or an array of them'],
    [{ acr: 'a b' }, 'option "acr" must be a class without blanks, or an array of them'],
    [{ acr: ['a', '"'] }, 'option "acr" must be a class without blanks, or an array of them'],
    [{ maxAgeSeconds: -1 }, 'option "maxAgeSeconds" must be'],
    [{ maxAgeSeconds: 1.5 }, 'option "maxAgeSeconds" must be'],
    [{ maxAge: 1 }, 'did you mean "maxAgeSeconds"?'],
  ])('refuses %j at construction', (given, message) => {
    expect(() => requireAuthentication(given as object)).toThrow(TypeError);
    expect(() => requireAuthentication(given as object)).toThrow(message);
  });

  it('carries its requirement, as other guards do', () => {
    expect(requirementOf(requireAuthentication({ acr: 'a', maxAgeSeconds: 5 }))).toEqual({
      stepUp: { acrValues: ['a'], maxAgeSeconds: 5 },
    });
  });
});
