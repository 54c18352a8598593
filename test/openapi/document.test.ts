import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigurationError } from '../../src';
import { loadContract } from '../../src/openapi/document';

describe('loadContract()', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-contract-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  function file(text: string): string {
    const path = join(folder, 'openapi.yaml');
    writeFileSync(path, text);
    return path;
  }

  it('reads the contract of the package once', () => {
    expect(loadContract()).toBe(loadContract());
  });

  it('finds the contract of the package', () => {
    expect(Object.keys(loadContract().paths)).toContain('/v1/orders/{id}/cancel');
  });

  it('reads another file', () => {
    expect(loadContract(file('openapi: 3.1.1\npaths: {}')).paths).toEqual({});
  });

  it.each([
    ['is not there', undefined, /missing\.yaml: cannot be read: ENOENT/],
    ['is not YAML', '{ a: [', /openapi\.yaml: cannot be read: /],
    ['is empty', '', /expected an OpenAPI 3\.1 document/],
    ['is of another version', 'openapi: 3.0.3\npaths: {}', /expected an OpenAPI 3\.1 document/],
    ['has no paths', 'openapi: 3.1.0', /expected an OpenAPI 3\.1 document/],
  ])('refuses a contract that %s', (_what, text, message) => {
    const path = text === undefined ? join(folder, 'missing.yaml') : file(text);
    expect(() => loadContract(path)).toThrow(ConfigurationError);
    expect(() => loadContract(path)).toThrow(message);
  });
});
