import { createHash } from 'node:crypto';
import type { Response } from 'express';

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
  const content = `<h1>${escapeHtml(title)}</h1>\n${body}`;
  sendDocument(res, { policy: CONTENT_SECURITY_POLICY, title, head: `<style>${STYLE}</style>`, body: content });
}

/** A page with files and a policy of its own. */
interface HtmlDocument {
  /** Content security policy. */
  readonly policy: string;
  readonly title: string;
  /** HTML, like `body`. */
  readonly head: string;
  readonly body: string;
}

export function sendDocument(res: Response, { policy, title, head, body }: HtmlDocument): void {
  res.set('Content-Security-Policy', policy).type('html').send(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
${head}
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
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? '');
}
