import type { RequestListener } from 'node:http';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listen } from '../../support/listen';
import type { Listening } from '../../support/listen';
import { startNginx } from './nginx-server';
import type { NginxServer } from './nginx-server';

/** The block of docs/operations.md, as it is there. */
const page = readFileSync(join(__dirname, '../../../docs/operations.md'), 'utf8');
const [, DOCUMENTED = ''] = /^```nginx\n([^]*?)^```$/m.exec(page) ?? [];
const LOCATIONS = `server {\nlisten 80;\n${DOCUMENTED}}\n`;

/** What the gate says, which `x-gate` of the request chooses. */
const gate: RequestListener = (req, res) => {
  const status = Number(req.headers['x-gate']);
  const isRetried = status === 503 || status === 429;
  res.writeHead(
    status,
    isRetried ? { 'Retry-After': '7' } : status === 401 ? { 'WWW-Authenticate': 'Bearer error="invalid_token"' } : {},
  );
  res.end();
};

describe('nginx asks the gate by auth_request', () => {
  let reached = 0;
  let listening: readonly Listening[] = [];
  let documented: NginxServer;
  let plain: NginxServer;

  beforeAll(async () => {
    const api: RequestListener = (_req, res) => {
      reached += 1;
      res.end('{}');
    };
    listening = await Promise.all([listen(gate), listen(api)]);
    const addresses = { 'http://gate;': `${listening[0]?.url};`, 'http://api;': `${listening[1]?.url};` };
    documented = await startNginx(LOCATIONS, '80', addresses);
    plain = await startNginx(LOCATIONS.replace('error_page 500 = @gate;', ''), '80', addresses);
  });

  beforeEach(() => {
    reached = 0;
  });

  afterAll(async () => {
    await Promise.all([documented?.stop(), plain?.stop()]);
    await Promise.all(listening.map((each) => each.close()));
  });

  const ask = ({ port }: NginxServer, status: number): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/v1/orders`, { headers: { 'x-gate': String(status) } });

  it.each([
    [503, '7'],
    [429, '7'],
    [500, null],
    [401, null],
    [403, null],
  ])('hands on a %i of the gate, with Retry-After %s, and the API is not reached', async (status, retryAfter) => {
    const response = await ask(documented, status);
    expect([response.status, response.headers.get('retry-after'), reached]).toEqual([status, retryAfter, 0]);
    const challenge = status === 401 ? 'Bearer error="invalid_token"' : null;
    expect(response.headers.get('www-authenticate')).toBe(challenge);
  });

  it('forwards what the gate allows', async () => {
    expect((await ask(documented, 204)).status).toBe(200);
    expect(reached).toBe(1);
  });

  it.each([503, 429])('makes 500 of a %i without the recipe', async (status) => {
    const response = await ask(plain, status);
    expect([response.status, response.headers.get('retry-after'), reached]).toEqual([500, null, 0]);
  });
});
