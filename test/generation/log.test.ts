import { describeFailure } from '../../src/generation/log';

it.each<[string, unknown, string]>([
  ['name and code', Object.assign(new TypeError('secret'), { code: 'E_1' }), 'TypeError (E_1)'],
  ['the code of its cause', new TypeError('secret', { cause: { code: 'E_1' } }), 'TypeError (E_1)'],
  ['no text as a name', { name: 'my secret', code: 'a b' }, 'a thrown object'],
  ['no text that only begins like a word', { name: 'a\n', code: '-a' }, 'a thrown object'],
  ['no name that is not a text', { name: 17, code: 17 }, 'a thrown object'],
  [
    'no name of more than 60 characters',
    { name: 'x'.repeat(61), code: 'y'.repeat(60) },
    `a thrown object (${'y'.repeat(60)})`,
  ],
  ['null', null, 'a thrown object'],
  ['a cause that is null', new TypeError('secret', { cause: null }), 'TypeError'],
])('describeFailure() names %s', (_what, error, expected) => {
  expect(describeFailure(error)).toBe(expected);
});
