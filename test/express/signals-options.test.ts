import type { Fetch } from '../../src/token/http';
import { fakeTime } from '../support/fake-time';
import { memoryGenerations } from '../../src/generation/memory';
import { NOW, event, jwk, setUp, sign } from './signals-scene';

const ISSUER = 'https://login.test';
const KEYS = `${ISSUER}/ssf/jwks`;

/** Serves the transmitter's metadata and keys, and notes what is asked for. */
function keyServer() {
  const asked: string[] = [];
  const fetch: Fetch = (url) => {
    asked.push(url);
    return Promise.resolve(Response.json(url.endsWith('jwks') ? { keys: [jwk] } : { issuer: ISSUER, jwks_uri: KEYS }));
  };
  return { asked, fetch };
}

describe('options of signalsReceiver()', () => {
  it.each<[object, string | RegExp]>([
    [{ transmitter: '' }, 'signalsReceiver(): option "transmitter" must be a non-empty string, got ""'],
    [
      { transmitter: undefined },
      'signalsReceiver(): option "transmitter" must be the iss of the security event tokens, got undefined',
    ],
    [
      { transmitter: 'https://login.test?tenant=1' },
      'signalsReceiver(): option "transmitter" must be a URL without a query and a fragment, got "https://login.test/"',
    ],
    [
      { audience: [] },
      'signalsReceiver(): option "audience" must be a non-empty string, or an array of them, got an empty array',
    ],
    [
      { generationSource: {} },
      'signalsReceiver(): option "generationSource" must be a generation source with append(), got an object',
    ],
    [
      { generationSource: undefined },
      'signalsReceiver(): option "generationSource" must be a generation source with append(), got undefined',
    ],
    [{ keys: undefined, jwksUri: 'http://login.test/jwks' }, /^signalsReceiver\(\): option "jwksUri" must be https:/],
    [{ keys: undefined, transmitter: 'http://login.test' }, /option "transmitter" must be https:/],
    [{ allowHttp: 'yes' }, 'signalsReceiver(): option "allowHttp" must be true or false, got "yes"'],
    [{ issuer: 7 }, 'signalsReceiver(): option "issuer" must be a non-empty string, got 7'],
    [{ generationClaim: 7 }, 'signalsReceiver(): option "generationClaim" must be a non-empty string, got 7'],
    [{ clock: 7 }, 'signalsReceiver(): option "clock" must be a function, got 7'],
    [{ transmiter: 'x' }, 'signalsReceiver(): unknown option "transmiter"; did you mean "transmitter"?'],
  ])('refuses wrong ones: %j', (options, message) => {
    expect(() => setUp(options as never)).toThrow(message);
  });

  it('accepts a transmitter whose name is not a URL where its keys are given', async () => {
    const { deliver, floors } = setUp({ transmitter: 'till-events', issuer: ISSUER });
    await deliver(sign(event({ iss: 'till-events' }))).expect(202);
    expect(floors()).toHaveLength(1);
  });

  it('compares the subjects with the issuer of the access tokens, where that is another than the transmitter', async () => {
    const { deliver, floors } = setUp({ issuer: 'https://other.test' });
    const sub_id = { format: 'iss_sub', iss: 'https://other.test', sub: 'kiosk' };
    await deliver(sign(event())).expect(202);
    await deliver(sign(event({ jti: 'e2', sub_id }))).expect(202);
    expect(floors().map((floor) => (floor as [string, number])[0])).toEqual(['kiosk']);
  });

  it.each([
    ['at jwksUri', { jwksUri: KEYS }, [KEYS]],
    ['where the metadata of the transmitter says', {}, [`${ISSUER}/.well-known/openid-configuration`, KEYS]],
    ['by http: with allowHttp', { jwksUri: 'http://keys.test/jwks', allowHttp: true }, ['http://keys.test/jwks']],
  ])('fetches keys that are not given %s, and refreshes them until close()', async (_where, options, urls) => {
    const { asked, fetch } = keyServer();
    const time = fakeTime(NOW);
    const remote = { keys: undefined, fetch, clock: time.clock, schedule: time.schedule, random: () => 0.5 };
    const { receiver, deliver } = setUp({ ...remote, ...options });
    await deliver(sign(event())).expect(202);
    expect(asked).toEqual(urls);
    await time.advance(600_000);
    expect(asked).toEqual([...urls, ...urls]);
    receiver.close();
    expect(time.pending).toBe(0);
  });

  it('responds with 429 while the transmitter cannot be asked about another unknown key, so that events are repeated', async () => {
    const { asked, fetch } = keyServer();
    const time = fakeTime(NOW);
    const remote = { keys: undefined, jwksUri: KEYS, fetch, clock: time.clock, schedule: time.schedule };
    const { deliver, receiver, floors } = setUp(remote);
    await deliver(sign(event({ jti: 'e0' }))).expect(202);
    for (const kid of ['k2', 'k3']) {
      expect((await deliver(sign(event(), { kid }))).body).toMatchObject({ err: 'invalid_key' });
    }
    const before = floors();
    const { status, headers, text } = await deliver(sign(event(), { kid: 'k4' }));
    expect([status, headers['retry-after'], text]).toEqual([429, '5', '']);
    expect(floors()).toEqual(before);
    expect(asked).toHaveLength(3);
    receiver.close();
  });

  it('responds with 503 while the keys cannot be fetched', async () => {
    const time = fakeTime(NOW);
    const fetch: Fetch = () => Promise.reject(new Error('down'));
    const remote = { keys: undefined, jwksUri: KEYS, fetch, clock: time.clock, schedule: time.schedule };
    const { deliver, receiver, log } = setUp(remote);
    const { status, headers } = await deliver(sign(event()));
    expect([status, headers['retry-after']]).toEqual([503, '5']);
    expect(log.at('error')).toMatchObject([{ message: 'a security event was not applied' }]);
    receiver.close();
  });
});

describe('a source in memory, which a restart empties', () => {
  const nodeEnv = process.env['NODE_ENV'];
  afterEach(() => void (process.env['NODE_ENV'] = nodeEnv));

  it('is warned about once, when the receiver is made', async () => {
    const { deliver, log } = setUp({ generationSource: memoryGenerations() });
    await deliver(sign(event())).expect(202);
    expect(log.at('warn')).toEqual([
      expect.objectContaining({
        message: 'signalsReceiver(): the generation source is in memory: a restart forgets every event it confirmed',
      }),
    ]);
    expect(setUp().log.at('warn')).toEqual([]);
  });

  it('is refused in production; one that survives a restart is not', async () => {
    process.env['NODE_ENV'] = 'production';
    expect(() => setUp({ generationSource: memoryGenerations() })).toThrow(
      new TypeError(
        'signalsReceiver(): option "generationSource" is in memory and forgets every event at a restart; ' +
          'in production give redisGenerations() or postgresGenerations()',
      ),
    );
    const { deliver, log } = setUp();
    await deliver(sign(event())).expect(202);
    expect(log.at('warn')).toEqual([]);
  });
});
