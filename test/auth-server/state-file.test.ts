import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseState, serializeState } from '../../src/auth-server/store';
import { closeAll, registerClient, startServer } from './fixtures';

afterEach(closeAll);

type Path = readonly (string | number)[];

/** The text of a state with a live client, a deleted one, and a retired key. */
async function exampleText(): Promise<string> {
  const server = await startServer();
  await registerClient(server);
  await server.post('/clients/pos-17/secrets');
  await registerClient(server, { client_id: 'gone' });
  await server.delete('/clients/gone');
  await server.post('/keys/rotate');
  return readFileSync(join(server.dataDir, 'state.json'), 'utf8');
}

/** Every member and entry; the inside of a key is that of node:crypto. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null || path.at(-1) === 'jwk') return [path];
  const entries = Object.entries(value).map(([name, member]): [string | number, unknown] => [
    Array.isArray(value) ? Number(name) : name,
    member,
  ]);
  return [path, ...entries.flatMap(([name, member]) => pathsOf(member, [...path, name]))];
}

/** The text with another value at a place. */
function changed(text: string, path: Path, value: unknown): string {
  if (path.length === 0) return JSON.stringify(value) ?? '';
  const document = JSON.parse(text) as Record<string, unknown>;
  const parent = path.slice(0, -1).reduce((node, name) => node[name] as Record<string, unknown>, document);
  parent[path.at(-1)!] = value;
  return JSON.stringify(document);
}

it('a state is read as it was written', async () => {
  const text = await exampleText();
  expect(serializeState(parseState(text))).toBe(text);
});

it.each<[string, unknown]>([
  ['null', null],
  ['nothing', undefined],
  ['a negative number', -1],
  ['an object without members', {}],
  ['a list with null', [null]],
])('with %s in the place of any member, it is refused and the text is not quoted', async (_what, value) => {
  const text = await exampleText();
  const accepted: string[] = [];
  for (const path of pathsOf(JSON.parse(text))) {
    try {
      parseState(changed(text, path, value));
      accepted.push(path.join('.'));
    } catch (error) {
      expect((error as Error).message).toMatch(
        /^(it|its "\w+"|an entry of its "clients") (is|are|does) (not|incomplete)/,
      );
    }
  }
  // An object has the members of a key if node:crypto takes it.
  expect(accepted).toEqual(JSON.stringify(value) === '{}' ? ['keys.signing.jwk', 'keys.retired.0.jwk'] : []);
});

it.each<[Path, unknown, string]>([
  [['format'], 1, 'its "format" is not 2: another version has written it'],
  [['format'], 3, 'its "format" is not 2: another version has written it'],
  [['keys', 'signing', 'alg'], 'HS256', 'its "keys" are incomplete'],
  [['keys', 'retired', 0, 'kid'], 7, 'its "keys" are incomplete'],
  [['clients', 0, 'disabled'], 'no', 'an entry of its "clients" is incomplete'],
  [['clients', 0, 'scopes', 0], 7, 'an entry of its "clients" is incomplete'],
  [['clients', 0, 'secrets', 1, 'hash'], 'abc', 'an entry of its "clients" is incomplete'],
  [['clients', 0, 'secrets', 0, 'hash'], `${'0'.repeat(64)}0`, 'an entry of its "clients" is incomplete'],
  [[], [], 'it does not hold a JSON object'],
  [[], 'text', 'it does not hold a JSON object'],
])('%j as %j is refused', async (path, value, message) => {
  const text = await exampleText();
  expect(() => parseState(changed(text, path, value))).toThrow(new Error(message));
});

it.each(['RS256', 'ES256'])('accepts keys of %s', async (alg) => {
  const text = await exampleText();
  expect(parseState(changed(text, ['keys', 'signing', 'alg'], alg)).keys.signing.alg).toBe(alg);
});
