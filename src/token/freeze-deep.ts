/**
 * Freezes a JSON value through and through: what is remembered is shared by all requests that carry it. Walks with a
 * list of its own, because a payload may be nested deeper than the stack.
 */
export function freezeDeep<Value>(value: Value): Value {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== 'object' || next === null) continue;
    for (const member of Object.values(Object.freeze(next)) as unknown[]) {
      if (typeof member === 'object') open.push(member);
    }
  }
  return value;
}
