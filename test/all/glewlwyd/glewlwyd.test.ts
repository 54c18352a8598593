import { memoryGenerations } from '../../../src/gate/generation';
import { expectRefused, guardedApi } from '../interop/guarded-api';
import type { GuardedApi } from '../interop/guarded-api';
import { eventually } from '../support/eventually';
import { missingForGlewlwyd, startGlewlwyd } from './glewlwyd-server';
import type { GlewlwydServer } from './glewlwyd-server';

const audience = 'https://api.example.com';
const missing = missingForGlewlwyd();
if (missing !== undefined) console.warn(missing);

const generationSource = memoryGenerations();
let glewlwyd: GlewlwydServer;
let api: GuardedApi;

(missing === undefined ? describe : describe.skip)('glewlwyd 2.7', () => {
  beforeAll(async () => {
    glewlwyd = await startGlewlwyd(audience);
    // Its tokens follow RFC 9068, which is the default, and carry no generation.
    api = await guardedApi(glewlwyd.issuer, { audience, generationClaim: 'iat', generationSource });
  });

  afterAll(async () => {
    await api?.close();
    await glewlwyd?.stop();
  });

  it('issues tokens that are accepted without a preset, by scope', async () => {
    const token = await glewlwyd.token('orders:read');
    const { status, body } = await api.get('/orders', token);
    expect([status, body.clientId, body.scopes]).toEqual([200, 'till-9', ['orders:read']]);
    expectRefused(await api.get('/orders/cancel', token), 'insufficient_scope', { scopes: ['orders:cancel'] });
    expectRefused(await api.get('/orders', `${token.slice(0, -8)}AAAAAAAA`), 'bad_signature');
    expectRefused(await api.get('/orders'), 'missing_token');
  });

  it('changes a description, and what publishes that has the earlier tokens refused', async () => {
    const earlier = await glewlwyd.token('orders:read');
    await glewlwyd.describeClient('Till 9, moved');
    await generationSource.append([['till-9', Date.now()]]);
    expectRefused(await api.get('/orders', earlier), 'superseded');
    // The issue time in tokens has whole seconds.
    await eventually('a new token is accepted', async () => {
      const { status } = await api.get('/orders', await glewlwyd.token('orders:read'));
      return status === 200;
    });
  });

  it('rotates its key without costing a request', async () => {
    const earlier = await glewlwyd.token('orders:read');
    await glewlwyd.rotateKey();
    const later = await glewlwyd.token('orders:read');
    expect([earlier, later].map(kidOf)).toEqual(['first', 'second']);
    const responses = await Promise.all([earlier, later, later].map((token) => api.get('/orders', token)));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it('is stopped, and tokens with a known key are accepted as before', async () => {
    const token = await glewlwyd.token('orders:read');
    await glewlwyd.stop();
    expect((await api.get('/orders', token)).status).toBe(200);
  });
});

function kidOf(token: string): unknown {
  const [header = ''] = token.split('.');
  return (JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: unknown }).kid;
}
