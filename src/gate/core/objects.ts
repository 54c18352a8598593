/** Whether a value is an object with named members: neither `null` nor an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `Array.isArray` that keeps the members unknown, so that they have to be checked. */
export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** An own member of an object; `undefined` for an inherited one, so that a polluted prototype adds nothing. */
export function ownValue(value: unknown, name: string): unknown {
  const isAnyObject = typeof value === 'object' && value !== null;
  return isAnyObject && Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}

/** A copy with the own members of an object and no prototype, so that a polluted one adds nothing. */
export function ownMembers<Value extends object>(value: Value): Value {
  return Object.assign(Object.create(null) as Value, value);
}

/** What `work` returns; `undefined` when it throws, for errors whose message repeats what was read. */
export function attempt<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** Options for each call of lru-cache, which reads inherited members of them too. Not frozen: it assigns `status`. */
export const NO_OPTIONS: object = Object.create(null) as object;
