import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSettings } from '../../src/settings/settings';
import { problemsOf } from './problems-of';

describe('a secret in a file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tillgate-secrets-'));
  afterAll(() => rmSync(directory, { recursive: true }));
  const fileWith = (text: string): string => {
    const path = join(directory, 'secret');
    writeFileSync(path, text);
    return path;
  };

  it.each([
    ['TILLGATE_ADMIN_TOKEN_FILE', 'adminToken', 'sixteen-or-more-letters'],
    ['TILLGATE_GENERATIONS_FILE', 'generationSource', 'rediss://user:geheim@redis.example.com'],
  ] as const)('%s is read without the line break at its end', (name, setting, value) => {
    for (const end of ['', '\n', '\r\n']) {
      expect(readSettings({ [name]: fileWith(value + end) })[setting]).toBe(value);
    }
  });

  it('is half of a credential: the client id is in a variable', () => {
    const env = {
      TILLGATE_AUTH_URL: 'https://login.example.com',
      TILLGATE_INTROSPECTION_CLIENT_ID: 'orders-api',
      TILLGATE_INTROSPECTION_CLIENT_SECRET_FILE: fileWith('geheim\n'),
    };
    expect(readSettings(env).introspection?.clientSecret).toBe('geheim');
  });

  it('is a problem where the file is missing or empty, its text is wrong, or the variable is set too; none shows it', () => {
    const missing = { TILLGATE_ADMIN_TOKEN_FILE: join(directory, 'missing') };
    expect(problemsOf(missing)).toEqual([
      expect.stringMatching(
        /^TILLGATE_ADMIN_TOKEN_FILE: ".*missing" cannot be read \(Error \(ENOENT\)\), expected a file with the value$/,
      ),
    ]);
    for (const end of ['', '\n', '\r\n']) {
      const empty = fileWith(end);
      expect(problemsOf({ TILLGATE_ADMIN_TOKEN_FILE: empty })).toEqual([
        `TILLGATE_ADMIN_TOKEN_FILE: "${empty}" is empty, expected a file with the value`,
      ]);
    }
    expect(problemsOf({ TILLGATE_ADMIN_TOKEN_FILE: fileWith('geheim') })).toEqual([
      expect.stringMatching(/^TILLGATE_ADMIN_TOKEN: got 6 characters \(not shown\), expected at least 16/),
    ]);
    const both = { TILLGATE_ADMIN_TOKEN_FILE: fileWith('geheim'), TILLGATE_ADMIN_TOKEN: 'sixteen-or-more-letters' };
    expect(problemsOf(both)).toEqual([
      'TILLGATE_ADMIN_TOKEN_FILE: set beside TILLGATE_ADMIN_TOKEN; remove one of the two',
    ]);
  });

  it('is for secrets only', () => {
    expect(problemsOf({ TILLGATE_PORT_FILE: fileWith('3000') })).toEqual([
      'TILLGATE_PORT_FILE: unknown variable; did you mean "TILLGATE_PORT"?',
    ]);
  });
});
