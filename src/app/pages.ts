import { createHash } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { Router } from 'express';
import type { RequestHandler, Response } from 'express';
import type { ContractDocument } from '@tillgate/testing/internal';
import { OPAQUE_INVALID_TOKEN, withoutSlash } from 'tillgate/internal';
import { REASONS, sendProblem } from 'tillgate';
import type { ReasonRow } from 'tillgate';

const STYLE = `:root { color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif }
body { max-width: 44rem; margin: 3rem auto; padding: 0 1.25rem }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1.5rem }
h2 { font-size: 1rem; margin: 1.75rem 0 0.25rem }
p { margin: 0 0 0.75rem }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere }
dt { margin-top: 1rem; font-weight: 600 }
dd { margin: 0 }
`;

/** Nothing is loaded, run or framed: the only style is the one above. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Sends a page. `body` is HTML: what comes from elsewhere must have gone through `escapeHtml()`. */
export function sendPage(res: Response, title: string, body: string): void {
  res.set('Content-Security-Policy', CONTENT_SECURITY_POLICY).type('html').send(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
<h1>${escapeHtml(title)}</h1>
${body}
</html>
`);
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text as HTML: no character of it is markup. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? '');
}

const READING = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Pages to read, which a document may have and need not: route audits see their paths instead of the routes. Another method
 * gets 405.
 */
export function serving(router: Router, ...serves: readonly string[]): RequestHandler {
  const paths = serves.map((path) => path.replace(/\{(\w+)\}/g, ':$1'));
  router.all(paths, function refuseMethod(req, res, next) {
    if (READING.includes(req.method)) return next();
    res.set('Allow', 'GET, HEAD');
    next({ status: 405 });
  });
  return Object.assign<RequestHandler, object>((req, res, next) => router(req, res, next), { serves });
}

/**
 * `GET /` says what this API is and where to go, as HTML or JSON; `/openapi.yaml` and `/openapi.json` are its contract.
 * All without a token.
 */
export function frontPage({
  contract,
  file,
  baseUrl,
  issuer,
  docs,
}: {
  readonly contract: ContractDocument;
  /** Where the contract was read from. */
  readonly file: string | undefined;
  readonly baseUrl: string;
  readonly issuer: string | undefined;
  /** Whether `/docs` is served. */
  readonly docs: boolean;
}): RequestHandler {
  const router = Router();
  const base = withoutSlash(baseUrl);
  const name = titleOf(contract);
  const links = {
    ...(docs && { docs: `${base}/docs/` }),
    openapi: `${base}/openapi.yaml`,
    protected_resource_metadata: `${base}/.well-known/oauth-protected-resource`,
    health: `${base}/readyz`,
    ...(issuer !== undefined && { authorization_server: issuer }),
  };

  router.get('/', function serveFrontPage(req, res) {
    res.vary('Accept');
    if (req.accepts(['html', 'json']) === 'json') return void res.json({ name, ...links });
    sendPage(res, name, `${INTRODUCTION}\n<dl>\n${Object.entries(links).map(row).join('\n')}\n</dl>`);
  });
  router.get('/openapi.yaml', function serveYaml(_req, res) {
    res.type('application/yaml');
    // JSON is YAML, too (YAML 1.2 section 1.3).
    if (file === undefined) return void res.send(JSON.stringify(contract, undefined, 2));
    // With a root, because a folder of the path may begin with a dot: node_modules/.pnpm.
    res.sendFile(basename(file), { root: dirname(file) });
  });
  router.get('/openapi.json', function serveJson(_req, res) {
    res.json(contract);
  });
  return serving(router, '/', '/openapi.yaml', '/openapi.json');
}

const INTRODUCTION =
  '<p>Every route below <code>/v1</code> needs an access token: <code>Authorization: Bearer &lt;ACCESS_TOKEN&gt;</code>.</p>';

const LABELS: Readonly<Record<string, string>> = {
  docs: 'Documentation, to try out',
  openapi: 'Contract (OpenAPI 3.1)',
  protected_resource_metadata: 'Protected resource metadata (RFC 9728)',
  health: 'Health',
  authorization_server: 'Authorization server',
};

function row([member, url]: readonly [string, string]): string {
  const shown = escapeHtml(url);
  return `<dt>${LABELS[member] ?? member}</dt>\n<dd><a href="${shown}"><code>${shown}</code></a></dd>`;
}

/** The name of the API. */
export function titleOf(contract: ContractDocument): string {
  const title = (contract as { readonly info?: { readonly title?: unknown } }).info?.title;
  return typeof title === 'string' ? title : 'API';
}

/** What to know about one kind of problem, in full sentences. */
type Advice = Pick<ReasonRow, 'cause' | 'caller' | 'operator'>;

const RETRY_LATER: Pick<Advice, 'caller'> = { caller: 'Repeat the request after Retry-After.' };
const CORRECT_REQUEST: Pick<Advice, 'operator'> = { operator: 'Nothing: the caller corrects the request.' };

/** Advice for the problems of the scaffold that are not about a token. */
export const OTHER_ADVICE = {
  invalid_request: {
    cause: 'The request does not fit openapi.yaml, or could not be read.',
    caller: 'Correct each place in `errors`: path says where, message says what is expected.',
    ...CORRECT_REQUEST,
  },
  not_found: {
    cause: 'The URL is not part of the API, or no row has this id.',
    caller: 'Check the path and the id against openapi.yaml.',
    operator: 'Check that no proxy changes the path; `tillgate routes` lists all of them.',
  },
  method_not_allowed: {
    cause: 'The URL exists, but not with this method.',
    caller: 'Use one of the methods in the Allow header.',
    ...CORRECT_REQUEST,
  },
  conflict: {
    cause: 'The row is not in a state in which this is possible.',
    caller: 'Read the row again, and decide by its current state.',
    ...CORRECT_REQUEST,
  },
  payload_too_large: {
    cause: 'The body is larger than the API accepts: 100 kB of JSON, 16 kB of a form.',
    caller: 'Send less in one request.',
    ...CORRECT_REQUEST,
  },
  unsupported_media_type: {
    cause: 'The media type, the character set or the encoding of the body is not supported.',
    caller: 'Send JSON in UTF-8 with `Content-Type: application/json`.',
    ...CORRECT_REQUEST,
  },
  request_header_fields_too_large: {
    cause: 'Request line and headers are larger than 16 KiB.',
    caller: 'Send fewer and shorter headers.',
    operator: 'Check that no proxy adds large headers.',
  },
  request_timeout: {
    cause: 'The request did not arrive in time: 10 s for its head, 30 s for all of it.',
    caller: 'Repeat the request over a better connection.',
    operator: 'Check the network and the proxies between the callers and the API.',
  },
  rate_limited: {
    cause: 'This client has sent more requests than it may in this period.',
    caller: 'Wait as long as Retry-After says; the RateLimit header says how many requests are left.',
    operator: 'Raise TILLGATE_RATE_LIMIT, if clients need more.',
  },
  internal_error: {
    cause: 'The API failed to process the request.',
    caller: 'Give the operator the request_id. Repeating the request is not likely to help.',
    operator: 'Look up the error in the log by request_id.',
  },
  not_ready: {
    cause: 'Something that the API needs is not available yet.',
    ...RETRY_LATER,
    operator: 'The members of `components` say what is missing: `tillgate check`.',
  },
  draining: { cause: 'This process is stopping.', ...RETRY_LATER, operator: 'Nothing: this is part of a deployment.' },
  metrics_unavailable: {
    cause: 'The package that makes metrics is not installed.',
    caller: 'Nothing.',
    operator: 'npm install prom-client@15',
  },
} as const satisfies Record<string, Advice>;

const ADVICE = new Map<string, Advice>(
  Object.entries({ ...REASONS, invalid_token: OPAQUE_INVALID_TOKEN, ...OTHER_ADVICE }),
);

/** Base URL of the problem pages: `type` of a problem is this and its code. */
export function problemTypesOf(baseUrl: string): string {
  return `${withoutSlash(baseUrl)}/problems/`;
}

/** `GET /problems/<code>`: what a problem means and what to do about it, as HTML, or as JSON for those who ask for it. */
export function problemPages(): RequestHandler {
  const router = Router();
  router.get('/problems/:code', function serveProblemPage(req, res, next) {
    const { code } = req.params;
    const advice = ADVICE.get(code);
    if (!advice) return next();
    res.vary('Accept').set('Cache-Control', 'public, max-age=3600');
    if (req.accepts(['html', 'json']) === 'json')
      return void res.json({ code, cause: advice.cause, caller: advice.caller, operator: advice.operator });
    sendPage(res, `Problem: ${code}`, sectionsOf(advice));
  });
  return serving(router, '/problems/{code}');
}

/** Makes the handler for URLs that no route has. */
export function notFound(problemTypes: string): RequestHandler {
  return function notFound(req, res) {
    const [code, detail] = ['not_found', 'No resource has this URL.'];
    sendProblem(req, res, { status: 404, type: problemTypes + code, code, detail });
  };
}

function sectionsOf({ cause, caller, operator }: Advice): string {
  const sections = [
    ['Cause', cause],
    ['What the caller does', caller],
    ['What the operator does', operator],
  ];
  return sections.map(([heading = '', text = '']) => `<h2>${heading}</h2>\n<p>${escapeHtml(text)}</p>`).join('\n');
}
