import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';

interface Request {
  readonly server: 'api' | 'tokens';
  readonly method: string;
  readonly path: string;
  readonly client_id?: string;
  readonly reason?: string;
}

const page = readFileSync(join(__dirname, '../../../src/cli/console/static/requests.js'), 'utf8');
const part = page.slice(page.indexOf('/** A word of a shell.'), page.indexOf('function durationOf'));
const STATE = { base_url: 'http://127.0.0.1:3000', auth_url: 'http://127.0.0.1:4000', command: 'tillgate' };
const curlOf = runInNewContext(`${part}; curlOf`, { state: STATE }) as (request: Request, body: string) => string;

/** The arguments that curl gets from the line that "Copy as curl" copies, and whatever else the line prints. */
function argumentsIn(request: Request, body = ''): string[] {
  const line = curlOf(request, body);
  expect(line).not.toMatch(/\p{Cc}/u);
  const script = `curl() { for one; do echo "<$one>"; done; }; tillgate() { printf '%s|' "$@"; }; ${line}`;
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).trimEnd().split('\n');
}

const PLANTED = [
  `; echo planted;`,
  '$(echo planted)',
  '`echo planted`',
  `'; echo planted; '`,
  '& echo planted',
  '\necho planted\n',
];

describe('"Copy as curl"', () => {
  it('is a line that sends the request with a new token', () => {
    const request = { server: 'api', method: 'PATCH', path: '/v1/orders/1', client_id: 'till 1' } as const;
    expect(argumentsIn(request, '{"a": "b c"}')).toEqual([
      ...['<-i>', '<-X>', '<PATCH>', '<http://127.0.0.1:3000/v1/orders/1>'],
      ...['<-H>', '<Authorization: Bearer token|till 1|>', '<-H>', '<Content-Type: application/json>'],
      ...['<-d>', '<{"a": "b c"}>'],
    ]);
  });

  it.each(PLANTED)('runs nothing of a method, a path, a client id or a body: %j', (planted) => {
    const text = planted.replaceAll('\n', '');
    const request = { server: 'api', method: planted, path: `/${planted}`, client_id: planted } as const;
    expect(argumentsIn(request, planted)).toEqual([
      ...['<-i>', '<-X>', `<${text}>`, `<http://127.0.0.1:3000/${text}>`],
      ...['<-H>', `<Authorization: Bearer token|${text}|>`, '<-H>', '<Content-Type: application/json>'],
      ...['<-d>', `<${text}>`],
    ]);
    const form = { server: 'tokens', method: 'POST', path: '/connect/token', client_id: planted } as const;
    expect(argumentsIn(form)).toEqual([
      ...['<-i>', '<-X>', '<POST>', '<http://127.0.0.1:4000/connect/token>', '<-d>', '<grant_type=client_credentials>'],
      ...['<-d>', `<client_id=${text}>`, '<-d>', '<client_secret=>', '<-d>', '<scope=>'],
    ]);
  });
});
