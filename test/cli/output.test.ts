import { loadContract, scopesOf } from '../../src/app/contract';
import { createLog } from '../../src/app/log';
import { openLog, prettyLine } from '../../src/cli/log';
import { banner } from '../../src/cli/banner';
import type { Logger } from '../../src/gate';

const SCOPES = scopesOf(loadContract());
const TIME = '2026-03-01T12:01:07.000Z';
const CLOCK = new Date(TIME).toTimeString().slice(0, 8);

function pretty(entry: object, colored = (_color: string, text: string) => text): string {
  return prettyLine(JSON.stringify({ level: 'info', time: TIME, ...entry }), colored).replaceAll(CLOCK, 'CLOCK');
}

describe('the log for people', () => {
  it('shows a request to the token server on one line: status, path, client, and why it was refused', () => {
    const msg = 'POST /connect/token';
    const refused = { status: 401, client: 'kiosk', reason: 'invalid_client', detail: 'wrong secret' };
    expect(pretty({ msg, ...refused })).toBe('CLOCK 401 POST /connect/token kiosk invalid_client wrong secret\n');
    expect(pretty({ msg, status: 200, client: 'kiosk' })).toBe('CLOCK 200 POST /connect/token kiosk\n');
    expect(pretty({ msg, status: 400, detail: 'a\u202eb' })).toBe('CLOCK 400 POST /connect/token a\\u202eb\n');
  });

  it('shows level, message and fields, and a stack on lines of its own', () => {
    const fields = { issuer: 'https://login.test', detail: 'fetch failed', ageMs: 12, keys: ['a'] };
    expect(pretty({ level: 'warn', msg: 'the key set cannot be read', ...fields })).toBe(
      'CLOCK warn  the key set cannot be read: fetch failed issuer=https://login.test ageMs=12 keys=["a"]\n',
    );
    expect(pretty({ msg: 'the feed ended', status: 502 })).toBe('CLOCK info  the feed ended status=502\n');
    expect(pretty({ level: 'error', msg: 'unexpected error', error: 'Error: no\n    at list' })).toBe(
      `CLOCK error unexpected error\n         Error: no\n             at list\n`,
    );
  });

  it('escapes what could move the cursor or reorder the line', () => {
    const attack = '\u001b[2J\u202e\r';
    const fields = { [attack]: attack, detail: attack, nested: { deep: attack } };
    const text = pretty({ msg: attack, error: `a\n${attack}`, ...fields });
    expect(text).not.toMatch(/[^\n\P{Cc}]|\u202e/u);
    expect(text).toContain('\\u001b[2J');
  });

  it('has a colour for the level', () => {
    const colored = (color: string, text: string): string => `<${color}>${text}</>`;
    expect(pretty({ level: 'warn', msg: 'late' }, colored)).toBe('<dim>CLOCK</> <yellow>warn </> late\n');
  });
});

it('writes the lines that the scaffold writes with pino, from the same level on', () => {
  const linesOf = (open: (destination: { write(line: string): void }) => Logger): unknown[] => {
    let text = '';
    const logger = open({ write: (line) => void (text += line) });
    logger.info({ a: 1 }, 'information');
    logger.warn({ a: 'ü' }, 'a warning');
    logger.error({ a: undefined }, 'an error');
    const lines = text.replace(/"time":"[^"]+"/g, '"time":"TIME"').trim();
    return lines.split('\n');
  };
  const settings = { logLevel: 'warn', production: false };
  const ours = linesOf((stderr) => openLog({ stderr, env: {} }, { log: 'json' }, settings));
  expect(ours).toEqual(linesOf((destination) => createLog('warn', destination)));
  expect(ours[0]).toBe('{"level":"warn","time":"TIME","a":"\\u00fc","msg":"a warning"}');
});

describe('the log of a server', () => {
  const development = { logLevel: 'info', production: false };
  function written(stderr: object, env: Record<string, string>, log?: string, settings = development): string {
    let text = '';
    const sink = { ...stderr, write: (chunk: string) => (text += chunk) };
    const logger = openLog({ stderr: sink, env }, log === undefined ? {} : { log }, settings);
    logger.info({ status: 200, method: 'GET' }, 'request');
    return text;
  }
  const terminal = { isTTY: true, columns: 80 };
  // eslint-disable-next-line no-control-regex -- the colours of this log
  const coloured = /^\u001b\[2m\d\d:\d\d:\d\d\u001b\[22m \u001b\[36minfo \u001b\[39m request .*status=200.*\n$/;
  const plain = /^\d\d:\d\d:\d\d info {2}request status=200 method=GET\n$/;
  const json = /^\{"level":"info",.*"status":200,.*\}\n$/;

  it.each<[string, RegExp, Parameters<typeof written>]>([
    ['text with colours in a terminal', coloured, [terminal, {}]],
    ['text without colours where NO_COLOR is set', plain, [terminal, { NO_COLOR: '1' }]],
    ['text without colours in a dumb terminal', plain, [terminal, { TERM: 'dumb' }]],
    ['text without colours in a file with --log pretty', plain, [{}, {}, 'pretty']],
    ['JSON in a file', json, [{}, {}]],
    ['JSON in a terminal with --log json', json, [terminal, {}, 'json']],
    ['JSON in a terminal in production', json, [terminal, {}, undefined, { logLevel: 'info', production: true }]],
  ])('is %s', (_what, expected, args) => {
    expect(written(...args)).toMatch(expected);
  });

  it('takes no other format', () => {
    expect(() => written({}, {}, 'xml')).toThrow('expected --log pretty or --log json, got "xml"');
  });
});

const client = {
  ...{ client_id: 'pos-terminal', client_secret: 'x'.repeat(43), scope: SCOPES.slice(0, 12).join(' ') },
  ...{ description: '', disabled: false, generation: 1 },
};
const report = {
  ...{ ready_ms: 1, base_url: 'http://127.0.0.1:3000', auth_url: 'http://127.0.0.1:4000', data_dir: '.tillgate' },
  ...{ clients: [client], audience: 'http://127.0.0.1:3000', scopes: SCOPES },
  ...{ console_url: 'http://127.0.0.1:4000/console' },
};

const { base_url: _, ...tokenServer } = report;
const SAMPLES = { allowed: '/v1/orders', denied: '/v1/orders', scope: 'orders:read' };
const NONE = { allowed: undefined, denied: undefined, scope: '' };
const LOCATION = 'TILLGATE_DATA_DIR=/home/till/shop/.tillgate';

it('the report of dev fits into 80 columns, except the line to paste', () => {
  const texts = [
    banner(report, 'npx @tillgate/cli', SAMPLES, LOCATION),
    banner({ ...report, clients: [] }, 'npx @tillgate/cli', NONE, LOCATION),
    banner(tokenServer, 'npx @tillgate/cli', SAMPLES, LOCATION),
    banner({ ...tokenServer, scopes: undefined }, 'npx @tillgate/cli', NONE, LOCATION),
  ];
  const lines = texts.flatMap((text) => text.split('\n')).filter((line) => !line.startsWith('  TOKEN='));
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
  for (const scope of client.scope.split(' ')) expect(texts[0]).toContain(scope);
  for (const scope of SCOPES) expect(texts[2]).toContain(scope);
});

it('the report of dev suggests requests to routes that the app has, and none where it has none', () => {
  const requests = (text: string) => text.match(/(curl -i|call (GET|POST)) \S+/g) ?? [];
  const named = banner(report, 'npx @tillgate/cli', { allowed: '/v1/tills', denied: '/v1/keys', scope: 'a' }, LOCATION);
  const calls = ['call GET /v1/tills', 'call POST /v1/keys'];
  expect(requests(named)).toEqual(['curl -i http://127.0.0.1:3000/v1/tills', ...calls]);
  expect(requests(banner(report, 'npx @tillgate/cli', NONE, LOCATION))).toEqual([]);
});

it('both reports say how the servers are found from any folder', () => {
  const tokens = banner(tokenServer, 'npx @tillgate/cli', NONE, LOCATION);
  for (const text of [banner(report, 'npx @tillgate/cli', SAMPLES, LOCATION), tokens]) {
    expect(text).toContain(`\n  export ${LOCATION}\n`);
  }
});
