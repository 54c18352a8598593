import { createClient } from '@tillgate/client';
import { callLines } from './lines.mjs';

const { AUTH_URL, BASE_URL, CLIENT_ID, CLIENT_SECRET, SCOPE } = process.env;
const client = createClient({
  tokenUrl: `${AUTH_URL}/connect/token`,
  clientId: CLIENT_ID,
  clientSecret: CLIENT_SECRET,
  scope: SCOPE,
  baseUrl: BASE_URL,
});
await callLines(client.fetch);
