import { createInterface } from 'node:readline';
import { createClient } from '@tillgate/client';

const { AUTH_URL, BASE_URL, CLIENT_ID, CLIENT_SECRET, SCOPE } = process.env;
const tokenUrl = `${AUTH_URL}/connect/token`;
const client = createClient({
  tokenUrl,
  clientId: CLIENT_ID,
  clientSecret: CLIENT_SECRET,
  scope: SCOPE,
  baseUrl: BASE_URL,
});
for await (const count of createInterface({ input: process.stdin })) {
  const one = async () => (await client.fetch('/v1/orders')).status;
  console.log(JSON.stringify(await Promise.all(Array.from({ length: Number(count) }, one))));
}
