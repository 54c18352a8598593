import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import express from 'express';
import type { Express, Request, RequestHandler, Response, Router } from 'express';
import { foreignCaller, isObject } from 'tillgate/internal';
import { problemHandler, sendProblem } from 'tillgate';
import type { LoggedRequest, ReportedRequest, RequestLog } from './request-log';

const STATIC = join(__dirname, 'static');
const STYLES = ['console.css', 'controls.css', 'lists.css', 'detail.css'];
const SCRIPTS = ['console.js', 'page.js', 'requests.js', 'clients.js'];
const MAX_BODY = '32kb';
/** A report holds a target, a token and a body of 16 kB each. */
const MAX_REPORT = '96kb';

const HEADERS = {
  'Cache-Control': 'no-store',
  // Everything comes from this server, and scripts of the page cannot make HTML of text.
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** What the page shows, and what it can do. */
interface ConsoleParts {
  readonly log: RequestLog;
  /** Open event streams. */
  readonly streams: Set<ServerResponse>;
  state(): object;
  /** Takes a request of the API, as its observer reports it. */
  record(request: ReportedRequest): void;
  inspect(token: string): Promise<object>;
  /** Sends a request again; what it rejects with is shown. */
  replay(entry: LoggedRequest, json: string | undefined): Promise<object>;
  clear(): void;
}

/** Makes the page at `/console` and the JSON API that it uses; both for this machine only. */
export function consoleApp(parts: ConsoleParts): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.use(setHeaders, requireThisMachine);
  for (const file of ['', ...STYLES, ...SCRIPTS]) {
    // With a root, because a folder of the path may begin with a dot: node_modules/.pnpm.
    const options = { root: STATIC, cacheControl: false };
    app.get(`/console/${file}`, (_req, res) => res.sendFile(file || 'index.html', options));
  }
  app.use('/console/api', consoleApi(parts));
  app.use((req, res) => refuse(req, res, 404, 'not_found', 'There is nothing at this URL.'));
  app.use(problemHandler());
  return app;
}

function consoleApi(parts: ConsoleParts): Router {
  const { log, streams } = parts;
  const api = express.Router();
  api.get('/state', (_req, res) => void res.json(parts.state()));
  api.get('/requests', function listRequests({ query }, res) {
    const wanted = log.entries.filter((entry) => isWanted(entry, query)).reverse();
    res.json({ requests: wanted.slice(0, Number(query['limit']) || undefined).map(summaryOf) });
  });
  api.post('/requests', express.json({ limit: MAX_REPORT }), function recordRequest(req: Request, res) {
    if (!isReport(req.body)) return refuse(req, res, 400, 'invalid_request', 'The body must be a request, as JSON.');
    parts.record(req.body);
    res.status(204).end();
  });
  api.delete('/requests', function clearRequests(_req, res) {
    parts.clear();
    res.status(204).end();
  });
  api.get('/requests/:id', function showRequest({ params: { id } }, res, next) {
    const entry = log.entries.findLast((one) => (id === 'last-denied' ? isDenied(one) : String(one.id) === id));
    if (entry) res.json(entry);
    else next();
  });
  api.post('/inspect', express.json({ limit: MAX_BODY }), async function inspectToken(req: Request, res) {
    const { token } = Object(req.body) as { token?: unknown };
    const given = typeof token === 'string' ? token.trim() : '';
    if (given === '') refuse(req, res, 400, 'invalid_request', 'The body must be JSON with a token: {"token": "..."}.');
    else res.json(await parts.inspect(given));
  });
  // Requires JSON, because a form of another page cannot send it.
  api.post('/requests/:id/replay', express.json({ limit: MAX_BODY }), async function replayRequest(req, res, next) {
    const entry = log.entries.find(({ id }) => String(id) === req.params['id']);
    if (!entry) return next();
    if (!req.body) return refuse(req, res, 400, 'invalid_request', 'The body must be JSON: {}, or {"body": ...}.');
    await parts.replay(entry, JSON.stringify((req.body as { body?: unknown }).body)).then(
      (outcome) => void res.json(outcome),
      ({ message }: Error) => refuse(req, res, 409, 'not_replayable', message),
    );
  });
  api.get('/events', function openStream(_req, res) {
    res.type('text/event-stream').write('retry: 1000\n\n');
    streams.add(res);
    res.once('close', () => streams.delete(res));
  });
  return api;
}

/** An app, or whoever else is on this machine, says what it likes: every member is checked before the page shows it. */
function isReport(report: unknown): report is ReportedRequest {
  if (!isObject(report)) return false;
  const { method, path, status, duration_ms, body, decision = {} } = report;
  if (typeof method !== 'string' || !METHOD.test(method) || typeof path !== 'string' || !isOptional('string', body))
    return false;
  return Number.isFinite(status) && Number.isFinite(duration_ms) && isObject(decision) && isDecision(decision);
}

/** Of every method that Node's parser accepts, and of nothing that a shell reads in another way. */
const METHOD = /^[A-Z-]{1,20}$/;

function isDecision(decision: Readonly<Record<string, unknown>>): boolean {
  const areTexts = TEXTS.every((name) => isOptional('string', decision[name]));
  const { unverified, required = [], granted = [] } = decision;
  const areLists = [required, granted].every(
    (list) => Array.isArray(list) && list.every((one) => typeof one === 'string'),
  );
  return areTexts && areLists && isOptional('boolean', unverified);
}

const TEXTS = ['outcome', 'reason', 'detail', 'client_id', 'token'];

function isOptional(type: 'string' | 'boolean', value: unknown): boolean {
  return value === undefined || typeof value === type;
}

/** What the list of requests shows: an entry without its explanation. */
export function summaryOf({ why: _why, ...summary }: LoggedRequest): object {
  return summary;
}

/** `?server=api|tokens` and `?status=denied|401|4xx`. */
function isWanted(entry: LoggedRequest, { server, status }: Request['query']): boolean {
  if (server !== undefined && entry.server !== server) return false;
  if (status === 'denied') return isDenied(entry);
  const code = String(entry.status);
  return status === undefined || status === code || status === `${code[0]}xx`;
}

function isDenied({ status }: LoggedRequest): boolean {
  return status === 401 || status === 403;
}

const setHeaders: RequestHandler = function setHeaders(_req, res, next) {
  res.set(HEADERS);
  next();
};

/** As the administration of the token server without an admin token. */
const requireThisMachine: RequestHandler = function requireThisMachine(req, res, next) {
  const foreign = foreignCaller(req);
  // A link of another page may lead to the page, which holds no data.
  const isLink = req.headers['sec-fetch-mode'] === 'navigate' && req.headers['sec-fetch-dest'] === 'document';
  if (foreign === undefined || (foreign === 'page' && req.path === '/console' && isLink)) return next();
  const detail = 'The console is for browsers on this machine: open it at 127.0.0.1 or localhost, without a proxy.';
  refuse(req, res, 403, 'forbidden', detail);
};

function refuse(req: Request, res: Response, status: number, code: string, detail: string): void {
  sendProblem(req, res, { status, code, detail });
}
