import * as oidc from 'openid-client';
import { makeCaller } from '../../../examples/callers/openid-client.mjs';
import { callLines } from './lines.mjs';

const { AUTH_URL, BASE_URL, CLIENT_ID, CLIENT_SECRET, SCOPE } = process.env;
const metadata = { issuer: AUTH_URL, token_endpoint: `${AUTH_URL}/connect/token` };
const config = new oidc.Configuration(metadata, CLIENT_ID, CLIENT_SECRET);
oidc.allowInsecureRequests(config);
await callLines(makeCaller(config, SCOPE, BASE_URL));
