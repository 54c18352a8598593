import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generationsFromUrl } from '../../../src/gate/generation/from-url';
import type { GenerationSource } from '../../../src/gate/generation';
import { expectRefused, guardedApi } from '../interop/guarded-api';
import type { GuardedApi } from '../interop/guarded-api';
import { collect, stop } from '../setup/process';
import { eventually } from '../support/eventually';
import { anyRedis } from '../support/redis-server';
import { dpopTests } from './dpop';
import { missingForKeycloak, startKeycloak } from './keycloak-server';
import type { KeycloakServer } from './keycloak-server';

const ROOT = join(__dirname, '../../..');
const AUDIENCE = 'https://api.example.com';
const missing = missingForKeycloak();
if (missing !== undefined) console.warn(missing);

let keycloak: KeycloakServer;
let redis: Awaited<ReturnType<typeof anyRedis>>;
let folder: string;
let bridge: ChildProcess;
let bridgeLog: () => string;
let generationSource: GenerationSource;
let api: GuardedApi;
let secret = 'till-9-secret';

const tillToken = (): Promise<string> => keycloak.token('till-9', secret, 'orders:read');

/** Starts `tillgate bridge keycloak` as an operator would. */
function startBridgeProcess(): void {
  const secretFile = join(folder, 'bridge-secret');
  const flags = ['--url', keycloak.issuer, '--client', 'tillgate-bridge', '--secret-file', secretFile];
  bridge = spawn(
    process.execPath,
    ['--conditions=source', '--import', 'tsx', 'src/cli/main.ts', 'bridge', 'keycloak', ...flags],
    {
      cwd: ROOT,
      env: { ...process.env, TILLGATE_DATA_DIR: join(folder, 'data'), TILLGATE_GENERATIONS: redis.url },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  bridgeLog = collect(bridge.stderr);
}

/** The internal id of a client, by which the admin API names it. */
async function internalId(clientId: string): Promise<string> {
  const [client] = (await keycloak.admin(`/clients?clientId=${clientId}`)) as { id: string }[];
  return client?.id ?? '';
}

/** Waits until the token is refused, and returns how long that took. */
async function msUntilSuperseded(token: string): Promise<number> {
  const fromMs = performance.now();
  await eventually('the token is refused', async () => (await api.get('/orders', token)).status === 401);
  const tookMs = Math.round(performance.now() - fromMs);
  expectRefused(await api.get('/orders', token), 'superseded');
  return tookMs;
}

/** A token of a later second than a change: the issue time in tokens has whole seconds. */
async function newToken(): Promise<string> {
  return eventually('a new token is accepted', async () => {
    const token = await tillToken();
    return (await api.get('/orders', token)).status === 200 && token;
  });
}

(missing === undefined ? describe : describe.skip)('Keycloak 26.7', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tillgate-bridge-'));
    [keycloak, redis] = await Promise.all([startKeycloak(), anyRedis()]);
    await writeFile(join(folder, 'bridge-secret'), 'tillgate-bridge-secret\n', { mode: 0o600 });
    startBridgeProcess();
    generationSource = generationsFromUrl(redis.url);
    api = await guardedApi(keycloak.issuer, { preset: 'keycloak', audience: AUDIENCE, generationSource });
  }, 300_000);

  afterAll(async () => {
    await api?.close();
    await generationSource?.close?.();
    if (bridge) await stop(bridge);
    await Promise.all([keycloak?.stop(), redis?.stop()]);
    await rm(folder, { recursive: true, force: true });
  });

  describe('tokens bound by DPoP', () => dpopTests(() => keycloak));

  it('issues tokens that the preset accepts, by scope', async () => {
    const token = await tillToken();
    const response = await api.get('/orders', token);
    expect([response.status, response.body.clientId, response.body.scopes]).toEqual([200, 'till-9', ['orders:read']]);
    expectRefused(await api.get('/orders/cancel', token), 'insufficient_scope', { scopes: ['orders:cancel'] });
    expectRefused(await api.get('/orders', `${token.slice(0, -8)}AAAAAAAA`), 'bad_signature');
    expectRefused(await api.get('/orders'), 'missing_token');
  });

  it('edits a description, and the bridge has the earlier tokens refused', async () => {
    await eventually('the bridge follows', () => bridgeLog().includes('following the changes'));
    const earlier = await newToken();
    const id = await internalId('till-9');
    await keycloak.admin(`/clients/${id}`, 'PUT', { clientId: 'till-9', description: 'Till 9, moved' });
    const tookMs = await msUntilSuperseded(earlier);
    console.info(`Keycloak: edit of a description to refusal in ${tookMs} ms`);
    await newToken();
  });

  it('makes a new secret, and a bridge that was not running publishes that once it is started again', async () => {
    const earlier = await newToken();
    await stop(bridge);
    const id = await internalId('till-9');
    ({ value: secret } = (await keycloak.admin(`/clients/${id}/client-secret`, 'POST')) as { value: string });
    expect((await api.get('/orders', earlier)).status).toBe(200);
    startBridgeProcess();
    await msUntilSuperseded(earlier);
    await newToken();
  });

  it('rotates its key without costing a request', async () => {
    const earlier = await newToken();
    const { id: realmId } = (await keycloak.admin('')) as { id: string };
    const config = { priority: ['200'], keySize: ['2048'] };
    const provider = { providerId: 'rsa-generated', providerType: 'org.keycloak.keys.KeyProvider', parentId: realmId };
    await keycloak.admin('/components', 'POST', { name: 'rotated', ...provider, config });
    const later = await tillToken();
    const kid = (token: string): unknown =>
      (JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { kid: unknown }).kid;
    expect(kid(later)).not.toBe(kid(earlier));
    const responses = await Promise.all([earlier, later, later].map((token) => api.get('/orders', token)));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it('deletes a client, and its tokens are refused', async () => {
    const token = await newToken();
    await keycloak.admin(`/clients/${await internalId('till-9')}`, 'DELETE');
    await msUntilSuperseded(token);
  });

  it('stamps a generation by a protocol mapper of the client, so that a newer token discards older ones', async () => {
    const stamped = await guardedApi(keycloak.issuer, {
      ...{ preset: 'keycloak', audience: AUDIENCE, generationClaim: 'generation' },
    });
    const mapper = (generation: number): object => ({
      ...{ name: 'generation', protocol: 'openid-connect', protocolMapper: 'oidc-hardcoded-claim-mapper' },
      config: {
        ...{ 'claim.name': 'generation', 'claim.value': String(generation) },
        ...{ 'jsonType.label': 'long', 'access.token.claim': 'true' },
      },
    });
    const body = { clientId: 'till-11', secret: 'till-11-secret', serviceAccountsEnabled: true };
    const scopes = { defaultClientScopes: ['commerce-api'], optionalClientScopes: ['orders:read'] };
    const first = Date.now() - 60_000;
    await keycloak.admin('/clients', 'POST', { ...body, ...scopes, protocolMappers: [mapper(first)] });
    const earlier = await keycloak.token('till-11', 'till-11-secret', 'orders:read');
    expect((await stamped.get('/orders', earlier)).body).toMatchObject({ clientId: 'till-11', generation: first });

    const path = `/clients/${await internalId('till-11')}/protocol-mappers/models`;
    const [{ id = '' } = {}] = (await keycloak.admin(path)) as { id?: string }[];
    await keycloak.admin(`${path}/${id}`, 'PUT', { id, ...mapper(first + 1) });
    const later = await keycloak.token('till-11', 'till-11-secret', 'orders:read');
    expect((await stamped.get('/orders', later)).body).toMatchObject({ generation: first + 1 });
    expectRefused(await stamped.get('/orders', earlier), 'superseded');
    await stamped.close();
  });

  it('is stopped, and tokens with a known key are accepted as before', async () => {
    const body = { clientId: 'till-10', secret: 'till-10-secret', serviceAccountsEnabled: true };
    const scopes = { defaultClientScopes: ['commerce-api'], optionalClientScopes: ['orders:read'] };
    await keycloak.admin('/clients', 'POST', { ...body, ...scopes });
    const token = await keycloak.token('till-10', 'till-10-secret', 'orders:read');
    expect((await api.get('/orders', token)).status).toBe(200);
    await keycloak.stop();
    expect((await api.get('/orders', token)).status).toBe(200);
    await eventually('the bridge says so', () => bridgeLog().includes('cannot be followed'));
  });
});
