import request from 'supertest';
import { closeAll, registerClient, startServer } from './fixtures';

afterEach(closeAll);

const PAGE = 'http://127.0.0.1:3000';
const PREFLIGHT = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization' };
const ALLOWED = 'access-control-allow-origin';

describe('a page of an origin in browserOrigins', () => {
  it('may ask for tokens with Basic credentials', async () => {
    const server = await startServer({ browserOrigins: [PAGE] });
    const preflight = await request(server.url).options('/connect/token').set('Origin', PAGE).set(PREFLIGHT);
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      [ALLOWED]: PAGE,
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'authorization, content-type, x-requested-with',
      vary: 'Origin',
    });
    expect(preflight.headers).not.toHaveProperty('access-control-allow-credentials');
    const client = await registerClient(server);
    const response = await server.token(client).set('Origin', PAGE);
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({ [ALLOWED]: PAGE, vary: 'Origin' });
  });

  it('reads refusals too', async () => {
    const server = await startServer({ browserOrigins: [PAGE] });
    const response = await request(server.url).post('/connect/token').type('form').send({}).set('Origin', PAGE);
    expect(response.headers[ALLOWED]).toBe(PAGE);
    expect(response.status).toBe(400);
  });

  it('may not use any other endpoint', async () => {
    const server = await startServer({ browserOrigins: [PAGE] });
    await registerClient(server);
    const refused = await server.get('/clients').set('Origin', PAGE);
    expect(refused.status).toBe(403);
    expect(refused.headers).not.toHaveProperty(ALLOWED);
    const preflight = await request(server.url).options('/clients/pos-17').set('Origin', PAGE).set(PREFLIGHT);
    expect(preflight.headers).not.toHaveProperty(ALLOWED);
  });
});

it.each([[undefined], [['http://localhost:3000']]])(
  'pages of other origins may not, with %j',
  async (browserOrigins) => {
    const server = await startServer({ browserOrigins });
    const preflight = await request(server.url).options('/connect/token').set('Origin', PAGE).set(PREFLIGHT);
    expect(preflight.status).toBe(405);
    expect(preflight.headers).not.toHaveProperty(ALLOWED);
  },
);

it.each([[['*']], [['null']], [['http://127.0.0.1:3000/']], ['http://127.0.0.1:3000']])(
  'refuses the option %j',
  async (browserOrigins) => {
    await expect(startServer({ browserOrigins: browserOrigins as string[] })).rejects.toThrow(
      'createAuthServer(): option "browserOrigins" must be an array of origins',
    );
  },
);
