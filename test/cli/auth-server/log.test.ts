import { basic, closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

afterAll(closeAll);

const encode = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
const GRANT = 'grant_type=client_credentials&scope=orders:read';
const REFUSED = 'invalid_client';

let server: TestServer;

beforeAll(async () => (server = await startServer()));
beforeEach(() => void (server.log.entries.length = 0));

/** The one line that a request has caused. */
function line(): object {
  expect(server.log.entries).toHaveLength(1);
  const [{ level, message, fields } = { level: '', message: '', fields: {} }] = server.log.entries;
  return { level, message, ...fields };
}

describe('the log of the token server', () => {
  it('has the status and the client of a token that was issued', async () => {
    const client = await registerClient(server);
    server.log.entries.length = 0;
    await server.token(client);
    expect(line()).toEqual({ level: 'info', message: 'POST /connect/token', status: 200, client: 'pos-17' });
  });

  describe('says why a client was refused, who learns nothing', () => {
    const send = async (authorization: string, body = ''): Promise<void> => {
      const headers = authorization === '' ? {} : { authorization };
      const response = await server.form('/connect/token', `${GRANT}${body}`, headers);
      expect([response.status, response.body]).toEqual([
        401,
        { error: REFUSED, error_description: 'Client authentication failed.' },
      ]);
    };
    const entry = (detail: string, client?: string) => ({
      level: 'info',
      message: 'POST /connect/token',
      status: 401,
      client,
      reason: REFUSED,
      detail,
    });

    it.each([
      ['unknown client', basic('nobody', 'x'), undefined],
      ['wrong secret', basic('till-1', 'x'), 'till-1'],
      ['unknown client', basic('gone', 'x'), undefined],
      ['no credentials that can be read', '', undefined],
      ['no credentials that can be read', 'Basic !', undefined],
    ])('%s', async (detail, authorization, client) => {
      const all = (await server.get('/clients')).body as { clients: readonly { client_id: string }[] };
      if (!all.clients.some(({ client_id }) => client_id === 'till-1')) {
        await registerClient(server, { client_id: 'till-1' });
        await registerClient(server, { client_id: 'gone' });
        await server.delete('/clients/gone');
      }
      server.log.entries.length = 0;
      await send(authorization);
      expect(line()).toEqual(entry(detail, client));
    });

    it('wrong secret, in the body', async () => {
      await send('', '&client_id=till-1&client_secret=x');
      expect(line()).toEqual(entry('wrong secret', 'till-1'));
    });

    it('disabled client', async () => {
      const client = await registerClient(server, { client_id: 'off' });
      await server.patch('/clients/off', { disabled: true });
      server.log.entries.length = 0;
      await send(basic('off', client.client_secret));
      expect(line()).toEqual(entry('disabled client', 'off'));
    });

    it.each(['a+b', 'a%b', 'a%20b', 'a:b', 'a:b+c%'])('sent without form-encoding: %s', async (client_id) => {
      const { client_secret } = await registerClient(server, { client_id });
      server.log.entries.length = 0;
      await send(encode(`${client_id}:${client_secret}`));
      expect(line()).toEqual(entry('sent without form-encoding', client_id));
      server.log.entries.length = 0;
      await send(encode(`${client_id}:x`));
      expect(line()).not.toMatchObject({ detail: 'sent without form-encoding' });
    });
  });

  it('says what is wrong with a request, and names no client that is not registered', async () => {
    const secret = 's'.repeat(43);
    await server.form('/connect/token', `grant_type=password&client_id=${secret}&client_secret=x`);
    expect(line()).toEqual({
      level: 'info',
      message: 'POST /connect/token',
      status: 400,
      reason: 'unsupported_grant_type',
      detail: 'The only grant type here is client_credentials.',
    });
    server.log.entries.length = 0;
    await server.post(`/clients/${secret}/revoke?client_secret=${secret}`, { [secret]: 1 });
    await server.post('/clients', { client_id: ` ${secret}`, scope: 'a' });
    expect(server.log.entries).toHaveLength(2);
    expect(JSON.stringify(server.log.entries)).not.toContain(secret);
  });

  it('leaves out what every gate reads again and again', async () => {
    await server.get('/generations');
    expect(server.log.entries).toEqual([]);
    await server.post('/generations');
    expect(line()).toEqual({ level: 'info', message: 'POST /generations', status: 405 });
  });
});
