import { runSteps, STEPS } from './steps';

const run = (...steps: readonly string[]) => runSteps(process.execPath, ...steps);

it('a gate loads no undici, and jwks-rsa with its first fetch: middleware, verify(), the http log, introspection', () => {
  expect(run(...Object.keys(STEPS))).toMatchObject(Object.values(STEPS));
});

it('a gate uses fetch where the app has used it before', () => {
  expect(run('fetch', 'gate')[1]).toMatchObject({ status: 200, clients: ['fetch'] });
});

it.each([
  ['before authenticate()', ['dispatcher', 'gate']],
  ['after authenticate()', ['dispatchLater']],
])('the dispatcher of an app is used: set %s', (_when, steps) => {
  expect(run(...steps).at(-1)).toMatchObject({ clients: ['fetch'], isDispatched: true });
});
