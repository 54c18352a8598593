import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messagesIn } from '../support/messages';
import { AUTH_URL, authorizationServer, cliScene, issuer } from './harness';
import type { Outcome } from './harness';

const good = issuer.token();

/** The line that leads on: what to do, or the problem. */
function textOf({ exitCode, stdout, stderr }: Outcome): string {
  if (exitCode === 0) return 'accepted';
  const lines = `${stdout}${stderr}`.trim().split('\n');
  const line = lines.find((one) => /^(what to do: |failed {2}|tillgate: )/.test(one)) ?? '';
  return line.replace(/^(what to do: |failed {2}|tillgate: )/, '');
}

describe('the command', () => {
  const texts = messagesIn('From the command');
  const cases: Readonly<Record<string, readonly [given: string, audience?: null]>> = {
    'Bearer and the token': [`Bearer ${good}`],
    'the token in quotes': [`"${good}"`],
    'the token with line breaks': [good.replace(/(.{60})/g, '$1\n')],
    'a token response as JSON': [JSON.stringify({ access_token: good, token_type: 'Bearer' })],
    'JSON without a token': ['{"error":"invalid_client"}'],
    'a token cut with dots': [`${good.slice(0, 30)}...`],
    'an ID token': [issuer.token({ header: { typ: 'JWT' }, claims: { at_hash: 'x' } })],
    'a JWT where RFC 9068 is expected': [issuer.token({ header: { typ: 'JWT' } })],
    'a new key under the old kid': [issuer.token({ foreignKey: true })],
    'an audience that nobody set': [good, null],
    'a claim of the wrong type': [issuer.token({ claims: { sub: 17 } })],
    'a token that no option takes': [issuer.token({ claims: { exp: undefined } })],
  };
  /** Those of other commands, and of the token endpoint, which a test of its own compares. */
  const others = [
    'an .env in UTF-16',
    'an app that ends while dev runs it',
    'an old access token at the token endpoint',
  ];

  function scene(audience: string | null = issuer.audience, cwd?: string) {
    const env = { TILLGATE_AUTH_URL: AUTH_URL, ...(audience !== null && { TILLGATE_AUDIENCE: audience }) };
    return cliScene({ env, respond: (sent) => authorizationServer(sent), ...(cwd !== undefined && { cwd }) });
  }

  it('has a text for every case', () => {
    expect(Object.keys(texts)).toEqual([...Object.keys(cases), ...others]);
  });

  it.each(Object.entries(cases))('explain, given %s', async (name, [given, audience]) => {
    expect(textOf(await scene(audience).run('explain', given))).toBe(texts[name]);
  });

  it('reads an .env in UTF-16', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'tillgate-messages-'));
    writeFileSync(join(cwd, '.env'), Buffer.from('\ufeffTILLGATE_PORT=x\n', 'utf16le'));
    expect(textOf(await scene(undefined, cwd).run('check'))).toBe(texts['an .env in UTF-16']);
  });

  it('dev says that its app has ended', async () => {
    const env = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0' };
    const { exitCode, stderr } = await cliScene({ env, fetch, untilStopped: () => new Promise(() => {}) }).run(
      ...['dev', '--json', '--', 'node', '-e', 'process.exit(7)'],
    );
    expect(exitCode).toBe(7);
    expect(stderr).toContain(`tillgate: ${texts['an app that ends while dev runs it']}\n`);
  });
});
