import { option, readOptions } from '../../../src/gate/core/options';
import { describe as describeValue, didYouMean } from '../../../src/gate/core/words';
import type { Option } from '../../../src/gate/core/options';

const size = { unit: 'pieces', min: 1, max: 10 };
const TABLE = { name: option.string(), size: option.number(size, 7) };
const read = (options: unknown, table: Readonly<Record<string, Option<unknown>>> = TABLE) =>
  readOptions('make', options, table);

describe('readOptions', () => {
  it.each<[unknown, string]>([
    [undefined, 'undefined'],
    [null, 'null'],
    ['x', '"x"'],
    [17, '17'],
    [[], 'an empty array'],
    [() => 1, 'a function'],
  ])('refuses %p instead of an options object', (options, got) => {
    expect(() => read(options)).toThrow(new TypeError(`make(): expected an options object, got ${got}`));
  });

  it.each([
    ['nmae', '; did you mean "name"?'],
    ['Name', '; did you mean "name"?'],
    ['names', '; did you mean "name"?'],
    ['colour', '; known are name, size'],
    ['__proto__', '; known are name, size'],
  ])('refuses the unknown option %s', (key, hint) => {
    const options = JSON.parse(`{${JSON.stringify(key)}:1}`) as unknown;
    expect(() => read(options)).toThrow(new TypeError(`make(): unknown option ${JSON.stringify(key)}${hint}`));
  });

  it.each([0, 11, NaN, Infinity, -Infinity, '5', [], {}, true])('refuses the number %p', (value) => {
    const message = `make(): option "size" must be a number of pieces from 1 to 10, got ${describeValue(value)}`;
    expect(() => read({ size: value })).toThrow(new TypeError(message));
  });

  it.each([1, 10, 2.5])('accepts the number %p, bounds included', (value) => {
    expect(read({ size: value })).toHaveProperty('size', value);
  });

  it('requires a whole number when it says so', () => {
    expect(() => read({ size: 2.5 }, { ...TABLE, size: option.number({ ...size, integer: true }) })).toThrow(
      new TypeError('make(): option "size" must be a whole number of pieces from 1 to 10, got 2.5'),
    );
  });

  it('uses the default when an option is undefined', () => {
    expect(read({ size: undefined, name: undefined })).toEqual({ size: 7, name: undefined });
  });

  it('names the factory and the whole path of an option in an option', () => {
    const table = { box: option.nested(TABLE) };
    expect(readOptions('make', { box: { size: 3 } }, table)).toEqual({ box: { size: 3, name: undefined } });
    expect(() => readOptions('make', { box: { size: 0 } }, table)).toThrow(
      new TypeError('make(): option "box.size" must be a number of pieces from 1 to 10, got 0'),
    );
    expect(() => readOptions('make', { box: { sise: 0 } }, table)).toThrow(
      new TypeError('make(): unknown option "box.sise"; did you mean "size"?'),
    );
  });

  it('reads own members only, and returns a frozen object without a prototype', () => {
    const options = read(Object.create({ size: 3 }));
    expect([options.size, Object.isFrozen(options), Object.getPrototypeOf(options)]).toEqual([7, true, null]);
  });
});

describe('describe', () => {
  it.each<[unknown, string]>([
    ['x'.repeat(61), `"${'x'.repeat(57)}..."`],
    [{ secret: 'hidden' }, 'an object'],
    [['secret'], 'an array of 1'],
    [Symbol('s'), 'a symbol'],
    [10n, 'a bigint'],
  ])('describes a value without revealing it: %#', (value, text) => {
    expect(describeValue(value)).toBe(text);
  });
});

describe('didYouMean', () => {
  it('proposes nothing from an empty list', () => {
    expect(didYouMean('x', [])).toBe('; known are ');
  });
});
