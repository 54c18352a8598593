/** Writes the id of the last row of a page as a cursor: opaque, so that nobody builds on what is in it. */
export function writeCursor(lastId: string): string {
  return Buffer.from(lastId).toString('base64url');
}

/** Reads a cursor; `undefined` when it is none of ours. Whether the id in it fits is for the collection to say. */
export function readCursor(cursor: string): string | undefined {
  const id = Buffer.from(cursor, 'base64url').toString('latin1');
  return writeCursor(id) === cursor ? id : undefined;
}
