import { claimAt, readClaimPath } from '../../../src/gate/core/claim-path';

it.each<[unknown, readonly string[] | undefined]>([
  ['generation', ['generation']],
  ['ext.generation', ['ext', 'generation']],
  ['https://example.com/generation', ['https://example.com/generation']],
  ['urn:example:a.b', ['urn:example:a.b']],
  [['a.b'], ['a.b']],
  [
    ['ext', 'https://example.com/a'],
    ['ext', 'https://example.com/a'],
  ],
  ['', undefined],
  ['ext..generation', undefined],
  ['.generation', undefined],
  [[], undefined],
  [[''], undefined],
  [['a', 5], undefined],
  [['a', , 'b'], undefined], // eslint-disable-line no-sparse-arrays -- a hole
  [{ 0: 'a', length: 1 }, undefined],
  [null, undefined],
  [5, undefined],
])('the path of %j', (given, path) => {
  expect(readClaimPath(given)).toEqual(path);
});

it.each<[readonly string[], unknown]>([
  [['ext', 'generation'], 5],
  [['a.b'], 6],
  [['list', 'length'], undefined],
  [['text', 'length'], undefined],
  [['toString'], undefined],
  [['ext', '__proto__', 'toString'], undefined],
  [['nothing', 'at', 'all'], undefined],
])('the claim at %j', (path, value) => {
  const claims = { ext: { generation: 5 }, 'a.b': 6, a: { b: 7 }, list: [1], text: 'x', nothing: null };
  expect(claimAt(claims, path)).toBe(value);
});
