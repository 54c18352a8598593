import { loggablePath } from '../../src/core/logger';

const HEADER = 'eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJFUzI1NiJ9';
const PAYLOAD = `eyJ${'a'.repeat(200)}`;
const SIGNATURE = 'b'.repeat(86);
const TOKEN = `${HEADER}.${PAYLOAD}.${SIGNATURE}`;

describe('loggablePath', () => {
  it.each([
    ['/v1/orders', '/v1/orders'],
    ['/v1/orders/ord_0001?access_token=x', '/v1/orders/ord_0001'],
    ['/v1/orders#access_token=x', '/v1/orders'],
    ['/', '/'],
    ['', ''],
    ['*', '*'],
    ['//v1//orders', '//v1//orders'],
    ['/v1/money-transfers/key-12345678', '/v1/money-transfers/key-12345678'],
    [`/v1/${'x'.repeat(64)}`, `/v1/${'x'.repeat(64)}`],
    [`/v1/${'x'.repeat(65)}/lines`, '/v1/[65]/lines'],
    ['http://api.test/v1/orders?x', '/v1/orders'],
    ['http://user:secret@api.test/v1/orders', '/v1/orders'],
    ['HTTP://api.test?access_token=x', ''],
    ['/v1/orders/eyJhbGciOiJub25lIn0.e30.', '/v1/orders/[token]'],
    ['/v1/orders;t=eyJhbGciOiJub25lIn0', '/v1/orders;t=[token]'],
  ])('shows %j as %j', (target, shown) => {
    expect(loggablePath(target)).toBe(shown);
  });

  it.each([
    ['as it is', TOKEN],
    ['with encoded points', TOKEN.replaceAll('.', '%2E')],
    ['with an encoded beginning', TOKEN.replaceAll('eyJ', '%65%79J')],
    ['as three segments', TOKEN.replaceAll('.', '/')],
    ['after many segments', `${'a/'.repeat(250)}${TOKEN}`],
    ['as a host', `//${TOKEN}`],
  ])('shows nothing of a token in the path: %s', (_how, token) => {
    const shown = loggablePath(`/v1/orders/${token}`);
    for (const part of [HEADER, PAYLOAD, SIGNATURE]) expect(shown).not.toContain(part.slice(0, 20));
  });

  it('truncates to 512 characters, in linear time', () => {
    expect(loggablePath(`/${'a/'.repeat(8_000)}`)).toHaveLength(512);
  });
});
