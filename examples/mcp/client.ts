import { connect } from './agent.js';

const url = new URL(process.env['MCP_URL'] ?? 'http://127.0.0.1:3000/mcp');
const { CLIENT_ID: clientId = '', CLIENT_SECRET: clientSecret = '' } = process.env;
const expectedIssuer = process.env['TILLGATE_AUTH_URL'] ?? 'http://127.0.0.1:4000';

const client = await connect(url, { clientId, clientSecret, expectedIssuer }, (method, { href }, response) => {
  const challenge = response.headers.get('www-authenticate');
  console.log(`${response.status} ${method} ${href}${challenge === null ? '' : `\n    ${challenge}`}`);
});
console.log(await client.callTool({ name: 'list_orders' }));
console.log(await client.callTool({ name: 'refund_order', arguments: { order: 'order-17' } }));
await client.close();
