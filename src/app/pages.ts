import { createHash } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { Router } from 'express';
import type { NextFunction, Request, Response } from 'express';
import { REASONS } from 'tillgate';
import { CONTRACT_FILE } from './contract';
import type { Contract } from './contract';
import type { AppSettings } from './settings';

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
function sendPage(res: Response, title: string, body: string): void {
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

/** Refuses other methods at a page to read, with 405; mount it with `all()` after the handler of the page. */
export function refuseWriting(req: Request, res: Response, next: NextFunction): void {
  res.set('Allow', 'GET, HEAD');
  if (req.method === 'OPTIONS') res.end();
  else next({ status: 405 });
}

/** `GET /` says what this API is and where to go, as HTML or JSON; `/openapi.yaml` and `/openapi.json` are its contract. */
export function frontPage(contract: Contract, { baseUrl, issuer, production }: AppSettings): Router {
  const router = Router();
  const base = withoutSlash(baseUrl);
  const { title: name } = contract.info;
  const links = {
    ...(!production && { docs: `${base}/docs/` }),
    openapi: `${base}/openapi.yaml`,
    protected_resource_metadata: `${base}/.well-known/oauth-protected-resource`,
    health: `${base}/readyz`,
    ...(issuer !== undefined && { authorization_server: issuer }),
  };

  function serveFrontPage(req: Request, res: Response): void {
    res.vary('Accept');
    if (req.accepts(['html', 'json']) === 'json') return void res.json({ name, ...links });
    sendPage(res, name, `${INTRODUCTION}\n<dl>\n${Object.entries(links).map(row).join('\n')}\n</dl>`);
  }
  function serveYaml(_req: Request, res: Response): void {
    // With a root, because a folder of the path may begin with a dot.
    res.type('application/yaml').sendFile(basename(CONTRACT_FILE), { root: dirname(CONTRACT_FILE) });
  }
  router.route('/').get(serveFrontPage).all(refuseWriting);
  router.route('/openapi.yaml').get(serveYaml).all(refuseWriting);
  router
    .route('/openapi.json')
    .get((_req, res) => void res.json(contract))
    .all(refuseWriting);
  return router;
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

/** A URL to which a path can be appended. */
export function withoutSlash(url: string): string {
  return url.replace(/\/$/, '');
}

/** What to know about one kind of problem, in full sentences. */
interface Advice {
  readonly cause: string;
  readonly caller: string;
  readonly operator: string;
}

const RETRY_LATER: Pick<Advice, 'caller'> = { caller: 'Repeat the request after Retry-After.' };
const CORRECT_REQUEST: Pick<Advice, 'operator'> = { operator: 'Nothing: the caller corrects the request.' };

/** The problems of this app besides the reasons of the gate. */
const PROBLEMS = {
  invalid_token: {
    cause: 'The access token is not accepted. In production callers do not learn why.',
    caller:
      'Forget the token that was refused, if it is still the current one, request one new token for all calls that wait, and repeat the call once. If the new token is refused too, give the operator the request_id.',
    operator:
      'Look up the request_id in the log, or run `tillgate explain <token>`, of @tillgate/cli (docs/operations.md).',
  },
  invalid_request: {
    cause: 'The request does not fit openapi.yaml, or could not be read.',
    caller: 'Correct each place in `errors`: path says where, message says what is expected.',
    ...CORRECT_REQUEST,
  },
  not_found: {
    cause: 'The URL is not part of the API, or no row has this id.',
    caller: 'Check the path and the id against openapi.yaml.',
    operator: 'Check that no proxy changes the path.',
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
    operator:
      'The members of `components` say what is missing: `tillgate check`, of @tillgate/cli (docs/operations.md).',
  },
  draining: { cause: 'This process is stopping.', ...RETRY_LATER, operator: 'Nothing: this is part of a deployment.' },
} as const satisfies Record<string, Advice>;

const ADVICE = new Map<string, Advice>(Object.entries({ ...REASONS, ...PROBLEMS }));

/** Codes after which a caller replaces its token, and where it finds how. */
const CODES_OF_CALLERS: ReadonlySet<string> = new Set(['superseded', 'invalid_token']);
const CALLERS_PAGE =
  '\n<p>In JavaScript @tillgate/client does so; docs/callers.md of the package tillgate has the same for other languages.</p>';

/** `GET /problems/<code>`: what a problem means and what to do about it, as HTML, or as JSON for those who ask for it. */
export function problemPages(): Router {
  const router = Router();
  router
    .route('/problems/:code')
    .get(function serveProblemPage(req, res, next) {
      const { code } = req.params;
      const advice = ADVICE.get(code);
      if (!advice) return next('router');
      const { cause, caller, operator } = advice;
      res.vary('Accept').set('Cache-Control', 'public, max-age=3600');
      if (req.accepts(['html', 'json']) === 'json') return void res.json({ code, cause, caller, operator });
      const more = CODES_OF_CALLERS.has(code) ? CALLERS_PAGE : '';
      sendPage(res, `Problem: ${code}`, sectionsOf(advice) + more);
    })
    .all(refuseWriting);
  return router;
}

function sectionsOf({ cause, caller, operator }: Advice): string {
  const sections = [
    ['Cause', cause],
    ['What the caller does', caller],
    ['What the operator does', operator],
  ];
  return sections.map(([heading = '', text = '']) => `<h2>${heading}</h2>\n<p>${escapeHtml(text)}</p>`).join('\n');
}
