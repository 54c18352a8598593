/** The media type that a Content-Type, or a document, names: without parameters, in lower case (RFC 9110 section 8.3.1). */
export function mediaTypeOf(text: string): string {
  return (text.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** Whether a media type, or a range of them, stands for another (RFC 9110 section 12.5.1). */
export function covers(documented: string, type: string): boolean {
  const range = mediaTypeOf(documented);
  return range === '*/*' || range === type || (range.endsWith('/*') && type.startsWith(range.slice(0, -1)));
}

/** Whether what has this media type is JSON (RFC 6839 section 3.1). */
export function isJson(type: string): boolean {
  return /[/+]json$/.test(type);
}
