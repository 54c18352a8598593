import { cliScene, json } from './harness';
import type { CliScene, SentRequest } from './harness';

/** Clears the screen, moves the cursor, reverses the text direction, breaks the line. */
const HOSTILE = 'till\u001b[2J\u009b1A\u202e\nroot';
const SHOWN = 'till\\u001b[2J\\u009b1A\\u202e\\u000aroot';
const CLIENT = { client_id: HOSTILE, description: HOSTILE, scope: 'a', disabled: false, generation: 1 };

function servers({ method, url }: SentRequest): Response {
  const { pathname } = new URL(url);
  if (pathname === '/v1/text') return new Response(`${HOSTILE}\n`, { headers: { 'content-type': 'text/plain' } });
  if (pathname === '/v1/json') return json(200, { name: HOSTILE });
  if (pathname === '/clients/refused') return json(400, { code: 'no', detail: HOSTILE });
  if (pathname === '/clients' && method === 'GET') return json(200, { clients: [CLIENT] });
  return json(201, { ...CLIENT, client_secret: 's' });
}

const scene = (): CliScene => {
  return cliScene({ respond: servers });
};
describe('untrusted text on the terminal', () => {
  it.each([
    ['client ids and Descriptions', ['clients', 'list'], SHOWN],
    ['the id of a new client', ['clients', 'add', 'till', '--scope', 'a'], `registered ${SHOWN}`],
    ['a response body of text', ['call', 'GET', '/v1/text'], 'till\\u001b[2J\\u009b1A\\u202e\nroot'],
    ['a response body of JSON', ['call', 'GET', '/v1/json'], '"name": "till\\u001b[2J\\u009b1A\\u202e\\nroot"'],
    ['an error of a server', ['clients', 'describe', 'refused', 'x'], 'till\\u001b[2J\\u009b1A\\u202e'],
  ])('is escaped: %s', async (_what, argv, shown) => {
    const { stdout, stderr } = await scene().run(...argv);
    expect(stdout + stderr).toContain(shown);
    // eslint-disable-next-line no-control-regex
    expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
  });

  it('keeps its meaning in JSON', async () => {
    const { stdout } = await scene().run('clients', 'list', '--json');
    expect(stdout).not.toContain('\u202e');
    expect(JSON.parse(stdout)).toEqual([CLIENT]);
  });
});
