/** Whether a value is an object with named members: neither `null` nor an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return isAnyObject(value) && !Array.isArray(value);
}

/** Whether a value is an object of any kind but a function. */
export function isAnyObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** An own member of an object; `undefined` for an inherited one, so that a polluted prototype adds nothing. */
export function ownValue(value: unknown, name: string): unknown {
  return isAnyObject(value) && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

/** A copy with the own members of an object and no prototype, so that a polluted one adds nothing. */
export function ownMembers<Value extends object>(value: Value): Value {
  return Object.assign(Object.create(null) as Value, value);
}

class Itself {
  constructor(object: object) {
    return object;
  }
}

/**
 * Makes a private member that any object can have: no other code can read, assign or copy it. A WeakMap hides as much, and each
 * of its entries costs the garbage collector 0.7 us.
 */
export function privateMember<Value>(): {
  get(object: unknown): Value | undefined;
  set(object: object, value: Value): void;
} {
  return class Member extends Itself {
    #value: Value | undefined;

    static get(object: unknown): Value | undefined {
      return isAnyObject(object) && #value in object ? object.#value : undefined;
    }

    static set(object: object, value: Value): void {
      const member = #value in object ? object : new Member(object);
      member.#value = value;
    }
  };
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
