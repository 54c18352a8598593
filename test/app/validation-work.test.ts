import { loadContract, operationsOf } from '../../src/openapi/document';
import { compileContract } from '../../src/app/request-validation';
import { largestBodies } from '../support/largest-bodies';

const contract = loadContract();
const find = compileContract(contract);
const withBody = operationsOf(contract).filter(({ operation }) => operation.requestBody);
const RIGHT = { item_id: 'itm_0001', quantity: 1, unit_price: { amount: 1, currency: 'GBP' } };

describe('the work of validating a body with many errors', () => {
  it.each(withBody.map((at) => [`${at.method} ${at.path}`, at] as const))(
    'of %s: each item is read once at most, and errors are bounded',
    (_name, { method, path, operation }) => {
      const { example } = operation.requestBody!.content['application/json'] as { example?: object };
      const { validate } = find(path)!.operations.get(method)!.body!;
      const unbounded: string[] = [];
      for (const { name, text } of largestBodies(example!, 6_000)) {
        if (name.includes('in each other')) continue;
        const body = JSON.parse(text) as object;
        const counted = countReads(body);
        validate(body);
        const isBounded = counted.reads() <= counted.items && (validate.errors ?? []).length <= 1;
        if (!isBounded) unbounded.push(name);
      }
      expect(unbounded).toEqual([]);
    },
  );

  it.each([0, 50])('stops at the first error, after %i right items', (before) => {
    const { validate } = find('/v1/orders')!.operations.get('POST')!.body!;
    const items = [...Array<object>(before).fill(RIGHT), ...Array<object>(100 - before).fill({})];
    const order = { location_id: 'loc_0001', channel: 'pos', lines: items };
    const lines = countReads(order);
    expect(validate(order)).toBe(false);
    expect(lines.reads()).toBeGreaterThan(before);
    expect(lines.reads()).toBeLessThanOrEqual(before + 1);
  });

  it('does not depend on keywords that cost more than the body is long', () => {
    expect(JSON.stringify(contract)).not.toMatch(/"(uniqueItems|patternProperties|propertyNames|contains)":/);
  });
});

/** Counts the items of the long arrays in a value, and how often one of them is read. */
function countReads(value: object): { readonly items: number; reads(): number } {
  let [items, reads] = [0, 0];
  const get = (target: unknown[], name: string | symbol): unknown => {
    if (typeof name === 'string' && name !== 'length') reads++;
    return Reflect.get(target, name);
  };
  const walk = (within: object): void => {
    for (const [name, member] of Object.entries(within) as [string, unknown][]) {
      if (typeof member !== 'object' || member === null) continue;
      if (!Array.isArray(member) || member.length < 100) {
        walk(member);
        continue;
      }
      items += member.length;
      Reflect.set(within, name, new Proxy<unknown[]>(member, { get }));
    }
  };
  walk(value);
  return { items, reads: () => reads };
}
