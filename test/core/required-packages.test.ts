import { installedVersion, requirePackages } from '../../src/core/required-packages';

describe('requirePackages', () => {
  it('names the command that installs what is missing, in the newest major version that works', () => {
    const versionOf = (name: string) => ({ helmet: '8.3.0' })[name];
    expect(() => requirePackages('tillgate/app', ['pino', 'express', 'helmet'], versionOf)).toThrow(
      new Error('tillgate/app needs packages that are not installed: npm install pino@10 express@5'),
    );
  });

  it('refuses Express 4, on which the gate runs but not the scaffold', () => {
    expect(() => requirePackages('tillgate dev', ['express'], () => '4.22.3')).toThrow(
      'npm install express@5 (express 4.22.3 is too old; a folder of its own may have a newer one)',
    );
  });

  it('accepts what is installed, also a package whose exports hide its version', () => {
    requirePackages('tillgate/app', ['pino', 'express', 'helmet', 'ajv-formats']);
    requirePackages('tillgate/app', ['pino'], () => 'unknown');
    expect(installedVersion('no-such-package')).toBeUndefined();
  });
});
