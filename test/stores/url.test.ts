import { createRequire } from 'node:module';
import { generationsFromUrl } from '../../src/gate/generation/from-url';

const real = createRequire(__filename);
const OWN = (real('tillgate/package.json') as { version: string }).version;

function absent(name: string): never {
  throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
}

describe('the stores that a URL needs', () => {
  it.each([
    ['redis://127.0.0.1', 'redis', 'redis@6'],
    ['rediss://127.0.0.1', 'redis', 'redis@6'],
    ['postgres://127.0.0.1/shop', 'postgres', 'pg@8'],
  ])('are named with their version and a client, where they are not installed: %s', (url, scheme, client) => {
    const load = (name: string): unknown => (name.startsWith('@tillgate/') ? absent(name) : real(name));
    expect(() => generationsFromUrl(url, { load })).toThrow(
      `generations: a ${scheme}: URL needs @tillgate/stores, and @tillgate/stores is not installed: npm install @tillgate/stores@${OWN} ${client}`,
    );
  });

  it.each([
    ['another', () => ({ version: '0.0.9' }), '0.0.9'],
    ['an unreadable', () => ({}), 'unknown'],
  ])('are refused in %s version', (_which, manifest, shown) => {
    const load = (name: string): unknown => (name === '@tillgate/stores/package.json' ? manifest() : real(name));
    expect(() => generationsFromUrl('redis://:secret@127.0.0.1', { load })).toThrow(
      `generations: a redis: URL needs @tillgate/stores, and @tillgate/stores ${shown} is installed, ${OWN} is needed: npm install @tillgate/stores@${OWN} redis@6`,
    );
  });
});
