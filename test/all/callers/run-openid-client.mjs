import { createInterface } from 'node:readline';
import * as oidc from 'openid-client';
import { makeCaller } from '../../../examples/callers/openid-client.mjs';

const { AUTH_URL, BASE_URL, CLIENT_ID, CLIENT_SECRET, SCOPE } = process.env;
const metadata = { issuer: AUTH_URL, token_endpoint: `${AUTH_URL}/connect/token` };
const config = new oidc.Configuration(metadata, CLIENT_ID, CLIENT_SECRET);
oidc.allowInsecureRequests(config);
const call = makeCaller(config, SCOPE);
for await (const count of createInterface({ input: process.stdin })) {
  const one = async () => (await call(`${BASE_URL}/v1/orders`)).status;
  console.log(JSON.stringify(await Promise.all(Array.from({ length: Number(count) }, one))));
}
