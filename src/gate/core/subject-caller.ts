/** No client id begins with it. */
export const SUBJECT_PREFIX = 'sub:';

/** The name of a caller whose token names no client: a subject alone could be the id of a client. */
export function subjectCaller(subject: string): string {
  return SUBJECT_PREFIX + subject;
}

/** The subject of a caller that is named by it; `undefined` for a client id, none of which begins with `sub:`. */
export function subjectOf(id: unknown): string | undefined {
  return typeof id === 'string' && id.startsWith(SUBJECT_PREFIX) ? id.slice(SUBJECT_PREFIX.length) : undefined;
}
