import { Router } from 'express';
import type { RequestHandler } from 'express';
import { REASON_ADVICE } from '../core/reason-advice';
import type { Advice } from '../core/reason-advice';
import { ownValue } from '../core/objects';
import { withoutSlash } from '../core/urls';
import { sendProblem } from '../index';
import { escapeHtml, sendPage } from './html';

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

const ADVICE = { ...REASON_ADVICE, ...OTHER_ADVICE };

/** Base URL of the problem pages: `type` of a problem is this and its code. */
export function problemTypesOf(baseUrl: string): string {
  return `${withoutSlash(baseUrl)}/problems/`;
}

/** `GET /problems/<code>`: what a problem means and what to do about it, as HTML, or as JSON for those who ask for it. */
export function problemPages(): Router {
  const router = Router();
  router.get('/problems/:code', function serveProblemPage(req, res, next) {
    const { code } = req.params;
    const advice = ownValue(ADVICE, code) as Advice | undefined;
    if (!advice) return next();
    res.vary('Accept').set('Cache-Control', 'public, max-age=3600');
    if (req.accepts(['html', 'json']) === 'json') return void res.json({ code, ...advice });
    sendPage(res, `Problem: ${code}`, sectionsOf(advice));
  });
  return router;
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
