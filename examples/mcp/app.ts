import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js';
import cors from 'cors';
import express from 'express';
import type { Express, Request, RequestHandler } from 'express';
import {
  AuthError,
  authenticate,
  authOf,
  problemHandler,
  protectedResourceMetadata,
  requireAuthenticated,
  sendProblem,
} from 'tillgate';
import type { AuthenticateOptions } from 'tillgate';
import { z } from 'zod';

/** The scopes of each tool: a call of any other one is refused. */
const TOOLS = new Map<unknown, string[]>([
  ['list_orders', ['orders:read']],
  ['refund_order', ['orders:write', 'payments:refund']],
]);

/** The SDK also takes an array of messages: one challenge names the scopes of all calls in it. */
const allowCalls: RequestHandler = (req, _res, next) => {
  const messages: { method?: unknown; params?: { name?: unknown } }[] = [req.body].flat();
  const calls = messages.filter(({ method }) => method === 'tools/call').map(({ params }) => TOOLS.get(params?.name));
  if (calls.includes(undefined)) return next(new AuthError('claim_refused'));
  const requiredScopes = [...new Set(calls.flatMap((scopes) => scopes ?? []))];
  const granted = authOf(req)?.scopes ?? [];
  const allowed = requiredScopes.every((scope) => granted.includes(scope));
  next(allowed ? undefined : new AuthError('insufficient_scope', { requiredScopes }));
};

/** The caller as the SDK wants it in `req.auth`. */
function authInfo(req: Request): AuthInfo | undefined {
  const auth = authOf(req);
  if (!auth) return undefined;
  const { clientId, scopes, expiresAtMs } = auth;
  const token = req.headers.authorization?.split(' ')[1] ?? '';
  return { token, clientId, scopes: [...scopes], expiresAt: Math.floor(expiresAtMs / 1000), extra: { ...auth } };
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
  app.use(protectedResourceMetadata(gate));
  // Before the gate, which refuses preflights: agents in a browser of any origin, with a token in a header and no cookie.
  app.use('/mcp', cors({ exposedHeaders: ['WWW-Authenticate'] }));
  app.use('/mcp', gate);
  app.post('/mcp', requireAuthenticated(), express.json(), allowCalls, async (req, res) => {
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
