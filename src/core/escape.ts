/**
 * C0 and C1 controls, line separators, and the format characters that reorder or hide text (Unicode Standard Annex 9,
 * zero-width characters, the byte order mark), and lone surrogates.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** Text of somebody else as a terminal may show it: what could move the cursor or reorder the line is escaped. */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, escapeUnits);
}

/**
 * JSON in printable ASCII. JSON allows characters that terminals take for commands and log viewers for line breaks
 * (U+009B, U+2028, U+202E).
 */
export function escapeNonAscii(json: string): string {
  return json.replace(/[\x7f-\uffff]/g, escapeUnits);
}

function escapeUnits(text: string): string {
  return Array.from({ length: text.length }, (_, index) => {
    return `\\u${text.charCodeAt(index).toString(16).padStart(4, '0')}`;
  }).join('');
}
