import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import cors from 'cors';
import express from 'express';
import type { Express, Request } from 'express';
import { authenticate, authInfo, defineScopes, problemHandler, protectedResourceMetadata, sendProblem } from 'tillgate';
import type { AuthenticateOptions } from 'tillgate';
import { z } from 'zod';

const { scopes, requireScope } = defineScopes(['orders:read', 'orders:write', 'payments:refund']);
type Scope = (typeof scopes)[number];

/** A call of any other tool is refused. */
const TOOLS = new Map<unknown, Scope[]>([
  ['list_orders', ['orders:read']],
  ['refund_order', ['orders:write', 'payments:refund']],
]);

/** The SDK also takes an array of messages: every call in it counts. */
function scopesOfCalls({ body }: Request): Scope[] {
  const messages: { method?: unknown; params?: { name?: unknown } }[] = [body].flat();
  return messages.flatMap(({ method, params }) => {
    if (method !== 'tools/call') return [];
    const scopes = TOOLS.get(params?.name);
    if (!scopes) throw new TypeError('a tool without an entry in TOOLS');
    return scopes;
  });
}

function createServer(): McpServer {
  const server = new McpServer({ name: 'orders', version: '1.0.0' });
  server.registerTool('list_orders', { description: 'Lists the orders of today.' }, ({ authInfo }) => ({
    content: [{ type: 'text', text: `order-17, for ${authInfo?.clientId}` }],
  }));
  const refund = { description: 'Refunds an order.', inputSchema: { order: z.string() } };
  server.registerTool('refund_order', refund, ({ order }, { authInfo }) => ({
    content: [{ type: 'text', text: `${order} is refunded, by ${authInfo?.clientId}` }],
  }));
  return server;
}

/** Makes the MCP server; the option `resource` is its URL. */
export function createApp(options: AuthenticateOptions): Express {
  const gate = authenticate({ challengeScopes: ['orders:read'], ...options });
  const app = express();
  app.use(protectedResourceMetadata({ gate, scopes, resourceName: 'Orders' }));
  // Before the gate, which refuses preflights: agents in a browser of any origin, with a token in a header and no cookie.
  app.use('/mcp', cors({ exposedHeaders: ['WWW-Authenticate'] }));
  app.use('/mcp', gate);
  app.post('/mcp', express.json(), requireScope(scopesOfCalls), async (req, res) => {
    const server = createServer();
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    res.once('close', () => void server.close());
    await server.connect(transport);
    await transport.handleRequest(Object.assign(req, { auth: authInfo(req) }), res, req.body);
  });
  app.all('/mcp', (req, res) => {
    const detail = 'This server has no sessions: messages are sent with POST.';
    sendProblem(req, res, { status: 405, code: 'method_not_allowed', detail, headers: { Allow: 'POST' } });
  });
  app.use(problemHandler());
  return app;
}
