import { authenticate, reportOnly, requireScope } from '../../src/gate';
import { contractCases, createTestIssuer } from '../../src/testing';
import type { CaseClass } from '../../src/testing';
import { isFullRun } from '../support/amount';
import { RESPONSE_BUGS, GUARD_BUGS, TOKEN_BUGS } from './contract-mutants';
import type { Plant } from './contract-mutants';
import { failuresOf } from './failures-of';
import { homemadeGate, homemadeGuard } from './homemade-gate';
import { assemble, SAMPLE_DOCUMENT, sampleParts, silent, tillgate } from './sample-app';
import type { SampleParts } from './sample-app';

const BUGS: Readonly<Record<string, Plant>> = { ...GUARD_BUGS, ...TOKEN_BUGS, ...RESPONSE_BUGS };

const LIST = 'GET /api/orders refuses';
const NO_SCOPES = `${LIST} a token without scopes`;
const WHO = 'GET /api/whoami refuses';
const WHO_DOCUMENTED = 'GET /api/whoami responds as documented';
const WHO_ACCEPTS = 'GET /api/whoami accepts a token without scopes';
const GET = 'GET /api/orders/{id} refuses a token without scopes';
const LATE = 'The app calls no handler after it has refused a request';
const TAKEN = 'status: expected 401, got 200';
const ALLOWED = 'status: expected 403, got 200';

/** The first case that fails, and the first line of its message. */
const FOUND: Readonly<Record<string, readonly [failing: string, says: string]>> = {
  'a guard is missing': [NO_SCOPES, ALLOWED],
  'a guard asks for the wrong scope': [GET, 'scope of the challenge: expected orders:read, got orders:write'],
  'a guard takes one scope where all are needed': [
    'POST /api/orders refuses a token with items:read, without orders:write',
    'status: expected 403, got 201',
  ],
  'a guard wants all scopes where one is enough': [
    'DELETE /api/orders/{id} accepts a token with only orders:remove',
    'status: expected the response of the handler, got 403 insufficient_scope, refused by the gate',
  ],
  'a guard runs after the handler': [GET, ALLOWED],
  'a guard runs after a handler that has only side effects': [
    'POST /api/orders refuses a token without scopes',
    'called before the guard: expected nothing, got saveOrder',
  ],
  'a guard refuses and calls next()': [GET, 'handlers reached: expected none, got (a function without a name)'],
  'a guard refuses and calls next() later': [
    LATE,
    'handlers reached later: expected none, got sendOrderLate (GET /api/orders/{id} refuses a token without scopes) and 2 more',
  ],
  'a gate refuses and calls next() later': [
    LATE,
    'handlers reached later: expected none, got sendClientLate (GET /api/whoami refuses a request without a token) and 1 more',
  ],
  'a guard compares parts of scopes': [`${LIST} a token with names similar to orders:read`, ALLOWED],
  'a route runs before the gate': [`${WHO} a request without a token`, TAKEN],
  'the algorithm is not pinned': [`${LIST} an unsigned token (alg none)`, TAKEN],
  'alg none is accepted': [`${LIST} an unsigned token (alg none)`, TAKEN],
  'the signature is not verified': [`${LIST} a token signed with a foreign key`, TAKEN],
  'the issuer is not checked': [`${LIST} a token of another issuer`, TAKEN],
  'the audience is not checked': [`${LIST} a token for another audience`, TAKEN],
  'expired tokens are accepted': [`${LIST} an expired token`, TAKEN],
  'the generation is not checked': [`${LIST} a superseded token`, TAKEN],
  'a token in the query is accepted': [
    `${LIST} a token in the header and in the query`,
    'status: expected 400, got 200',
  ],
  'two Authorization headers are accepted': [`${LIST} two Authorization headers`, 'status: expected 400, got 200'],
  'a malformed token gets a 500': [
    'GET /api/orders fails with 500 for a malformed token',
    'status: expected 401, got 500',
  ],
  'an issuer in a list is accepted': [`${LIST} a token with a list of issuers`, TAKEN],
  'an issuer that is empty is accepted': [`${LIST} a token without an issuer`, TAKEN],
  'every audience of a list has to be right': [`${LIST} a token with an empty list of audiences`, TAKEN],
  'an audience is a member of an object': [`${LIST} a token with an object for its audience`, TAKEN],
  'expired tokens are accepted for two minutes': [`${LIST} a token that has just expired`, TAKEN],
  'one kind of bad token gets a 500': [
    'GET /api/orders fails with 500 for an expired token',
    'status: expected 401, got 500',
  ],
  'a 401 has no challenge': [`${LIST} a request without a token`, 'challenge: expected Bearer, got none'],
  'a 403 has no challenge': [NO_SCOPES, 'challenge: expected Bearer, got none'],
  'a 401 is sent instead of a 403': [NO_SCOPES, 'status: expected 403, got 401'],
  'a 403 is sent instead of a 401': [`${LIST} an expired token`, 'status: expected 401, got 403'],
  'a challenge names the wrong scope': [NO_SCOPES, 'scope of the challenge: expected orders:read, got admin:all'],
  'a challenge lacks its error': [
    `${LIST} a malformed token`,
    'error of the challenge: expected invalid_token, got none',
  ],
  'a challenge has an error where no token came': [
    `${LIST} a request without a token`,
    'error of the challenge: expected none, got invalid_token',
  ],
  'an error is not problem+json': [NO_SCOPES, 'content type: expected application/problem+json, got text/plain'],
  'one response hides its reason, the others do not': [
    `${LIST} an expired token`,
    'code: expected expired, got invalid_token',
  ],
  'the status in a body differs': [NO_SCOPES, 'status in the body: expected 403, got 401'],
  'a body breaks its schema': [
    'GET /api/orders/{id} responds as documented',
    'body of a 200: expected its schema, got /quantity must be integer',
  ],
  'a status is not documented': [WHO_DOCUMENTED, 'documented status: expected 200, 4XX, got 202'],
  'a content type is not documented': [
    WHO_DOCUMENTED,
    'documented content type: expected application/json, got text/plain',
  ],
  'a good request gets a 500': [
    'GET /api/whoami fails with 500 for a token without scopes',
    'status: expected below 500, got 500',
  ],
  'a body is invalid JSON': [WHO_DOCUMENTED, 'body: expected JSON, got invalid JSON'],
  'a good request exceeds the rate limit': [
    WHO_ACCEPTS,
    'status: expected any other; raise the rate limit for tests, got 429',
  ],
  'a route is not documented': [
    'The app has no route that sample-openapi.yaml does not document',
    'routes: expected [], got ["GET /api/internal/orders: the app has it, sample-openapi.yaml does not; document the operation, or remove the route"]',
  ],
  'an operation has no route': [GET, 'status: expected 403, got 404'],
};

/** The classes that every app is tested with. */
const CLASSES_OF_ALL_APPS: readonly CaseClass[] = ['token', 'scope', 'document', 'routes'];

/** Runs the cases in order until one fails. */
async function firstFailure(plant: Plant, classes: readonly CaseClass[] | undefined): Promise<readonly string[]> {
  const issuer = createTestIssuer();
  const cases = contractCases({
    app: assemble(plant(issuer)),
    openapi: SAMPLE_DOCUMENT,
    issuer,
    depth: 'quick',
    strict: true,
    generations: true,
    classes,
  });
  const [first] = await failuresOf(cases, 1);
  return first === undefined
    ? []
    : first
        .split('\n')
        .map((line) => line.trim())
        .slice(0, 2);
}

describe('contractCases()', () => {
  it.each([
    ['with Tillgate', (issuer) => sampleParts(tillgate(issuer))],
    [
      'with a gate whose 401s name the scopes to ask for',
      (issuer) =>
        sampleParts({
          ...tillgate(issuer),
          gate: authenticate({ ...issuer.options, logger: silent, challengeScopes: ['orders:read'] }),
        }),
    ],
    ['with another correct gate', (issuer) => sampleParts({ gate: homemadeGate(issuer), guard: homemadeGuard })],
  ] satisfies (readonly [string, Plant])[])('passes for the correct app %s', async (_where, plant) => {
    expect(await firstFailure(plant, isFullRun ? undefined : CLASSES_OF_ALL_APPS)).toEqual([]);
  });

  const everySixth = Object.entries(FOUND).filter((_bug, index) => isFullRun || index % 6 === 0);
  it.each(everySixth)('notices when %s', async (bug, expected) => {
    expect(await firstFailure(BUGS[bug] as Plant, CLASSES_OF_ALL_APPS)).toEqual(expected);
  });

  it('is tested with every planted bug', () => {
    expect(Object.keys(FOUND)).toEqual(Object.keys(BUGS));
  });
});

describe('a trial', () => {
  it('counts neither as a guard nor as a function before one', async () => {
    const issuer = createTestIssuer();
    const parts = sampleParts(tillgate(issuer));
    const tried = reportOnly(requireScope('orders:cancel'));
    const options = { openapi: SAMPLE_DOCUMENT, issuer, classes: ['scope'], strict: true } as const;
    const failures = (getOrder: SampleParts['getOrder']) =>
      failuresOf(contractCases({ ...options, app: assemble({ ...parts, getOrder }) }));
    expect(await failures([tried, ...parts.getOrder])).toEqual([]);
    expect(await failures([tried, ...parts.getOrder.slice(-1)])).not.toEqual([]);
  });
});
